import { defineConfig } from 'vitest/config';

const project = (name: string, extra: Record<string, unknown> = {}) => ({
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source'] } },
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    environment: 'node',
    env: { METADATA_SERVER_DETECTION: 'none', GOOGLE_CLOUD_PROJECT: 'ptk-test' },
    testTimeout: 20_000,
    hookTimeout: 60_000,
    ...extra,
  },
});

const redis = 'test/support/redis-server.ts';
const google = 'test/support/google-emulators.ts';

const build = 'test/support/build.ts';
const processes = { testTimeout: 90_000, expect: { poll: { timeout: 10_000 } } };

/**
 * With `EMULATORS=official` the tests that can be put to Google's emulators, which are slow where transactions contend. The other files
 * of `test/e2e` are about our own command.
 */
const officialProjects = [
  project('contract', { globalSetup: [redis, google], testTimeout: 90_000 }),
  project('emulator', { globalSetup: [google] }),
  project('e2e', {
    ...processes,
    globalSetup: [build, google],
    include: ['bad-input', 'crash', 'delay', 'examples', 'functions', 'sigterm'].map((file) => `test/e2e/${file}.test.ts`),
  }),
];

const projects = [
  project('unit'),
  project('rules'),
  project('terraform', { testTimeout: 90_000 }),
  project('contract', { globalSetup: [redis] }),
  project('emulator', { globalSetup: [google] }),
  project('e2e', { ...processes, globalSetup: [build] }),
];

export default defineConfig({
  test: {
    // By default one core is left free, which of two is half of them.
    maxWorkers: '100%',
    reporters: ['default', './test/support/totals-reporter.ts'],
    projects: process.env.EMULATORS === 'official' ? officialProjects : projects,
  },
});
