import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Zippable, zipSync } from 'fflate';
import { rolldown } from 'rolldown';

/** Builds the package into `dist/`, or the folder that is given, and each deployable into `deploy/NAME/` and `deploy/NAME.zip` in there. */
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = resolve(process.argv[2] ?? join(root, 'dist'));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const pinned: Record<string, string> = { ...manifest.devDependencies, ...manifest.dependencies };

const deployables = [
  {
    name: 'functions',
    entry: 'functions/index.ts',
    bundle: 'index.mjs',
    uses: [
      '@google-cloud/firestore',
      '@google-cloud/functions-framework',
      '@google-cloud/pubsub',
      '@google-cloud/tasks',
      '@grpc/grpc-js',
      '@opentelemetry/api',
      'canonicalize',
      'croner',
      'json-p3',
      'redis',
    ],
    files: [],
    scripts: { start: 'functions-framework' },
  },
  {
    name: 'appengine',
    entry: 'appengine/main.ts',
    bundle: 'app.mjs',
    uses: [
      '@google-cloud/firestore',
      '@google-cloud/pubsub',
      '@google-cloud/tasks',
      '@grpc/grpc-js',
      '@opentelemetry/api',
      'croner',
      'express',
      'google-auth-library',
      'redis',
    ],
    files: ['appengine/app.yaml'],
    scripts: { start: 'node app.mjs' },
  },
];

/** A zip holds local times and modes; fixed ones make the same source the same bytes. */
const zipTime = '2020-01-01T00:00:00';

buildPackage();
for (const deployable of deployables) await buildDeployable(deployable);

function buildPackage(): void {
  rmSync(dist, { recursive: true, force: true });
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json'), '--outDir', dist], { stdio: 'inherit' });
  const command = join(dist, 'src/cli/main.js');
  chmodSync(command, 0o755);
}

async function buildDeployable({ name, entry, bundle, uses, files, scripts }: (typeof deployables)[number]): Promise<void> {
  const folder = join(dist, 'deploy', name);
  mkdirSync(folder, { recursive: true });
  const built = await rolldown({
    input: join(root, entry),
    platform: 'node',
    external: (id) => !id.startsWith('.') && !id.startsWith('/'),
  });
  const { output } = await built.write({ file: join(folder, bundle), format: 'esm', sourcemap: false });
  await built.close();
  const imported = output.flatMap((chunk) => (chunk.type === 'chunk' ? chunk.imports : [])).filter((id) => !id.startsWith('node:'));
  const undeclared = imported.filter((id) => !uses.includes(id));
  if (undeclared.length > 0) throw new Error(`${name} imports ${undeclared.join(', ')}, which its package.json does not declare`);
  const dependencies = Object.fromEntries(imported.sort().map((id) => [id, pinned[id]]));
  const ownManifest = {
    name: `pubsub-toolkit-${name}`,
    private: true,
    type: 'module',
    main: bundle,
    engines: { node: '24' },
    scripts,
    dependencies,
  };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(ownManifest, null, 2)}\n`);
  for (const file of files) cpSync(join(root, file), join(folder, file.slice(file.lastIndexOf('/') + 1)));
  writeFileSync(`${folder}.zip`, zipFolder(folder));
}

function zipFolder(folder: string): Uint8Array {
  const entries: Zippable = {};
  for (const file of readdirSync(folder).sort())
    entries[file] = [readFileSync(join(folder, file)), { mtime: zipTime, os: 3, attrs: 0o644 << 16 }];
  return zipSync(entries, { level: 9 });
}
