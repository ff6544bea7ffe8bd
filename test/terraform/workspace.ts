import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const repository = join(import.meta.dirname, '..', '..');

/** A zip without files. */
const emptyZip = Buffer.from(`504b0506${'00'.repeat(18)}`, 'hex');

export type Edit = { readonly file: string; readonly from: string; readonly to: string };

export type Workspace = { /** The copied tree. */ readonly root: string; remove(): void };

/**
 * A copy of a tree of HCL beside a `dist/deploy` as `npm run build` makes it; Terraform writes into the folders that it works in.
 *
 * @throws Error where a text that is to be replaced is not there
 */
export function copyOf(tree: string, edits: readonly Edit[] = []): Workspace {
  const folder = mkdtempSync(join(tmpdir(), 'ptk-terraform-'));
  const root = join(folder, 'terraform');
  cpSync(tree, root, { recursive: true, filter: (path) => !/(^|\/)(\.terraform|terraform\.tfstate)/.test(path.slice(tree.length)) });
  mkdirSync(join(folder, 'dist', 'deploy'), { recursive: true });
  for (const name of ['functions.zip', 'appengine.zip']) {
    const built = join(repository, 'dist', 'deploy', name);
    const copy = join(folder, 'dist', 'deploy', name);
    if (existsSync(built)) symlinkSync(built, copy);
    else writeFileSync(copy, emptyZip);
  }
  const remove = () => rmSync(folder, { recursive: true, force: true });
  try {
    for (const edit of edits) replace(root, edit);
  } catch (error) {
    remove();
    throw error;
  }
  return { root, remove };
}

function replace(root: string, { file, from, to }: Edit): void {
  const path = join(root, file);
  const text = readFileSync(path, 'utf8');
  if (!text.includes(from)) throw new Error(`${file} does not hold ${JSON.stringify(from)}`);
  // A function, since `$` means something in a text.
  const replaced = text.replace(from, () => to);
  writeFileSync(path, replaced);
}
