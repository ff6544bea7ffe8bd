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

export default defineConfig({
  test: {
    reporters: ['default', './test/support/totals-reporter.ts'],
    projects: [
      project('unit'),
      project('rules'),
      project('contract', { globalSetup: ['test/support/redis-server.ts'] }),
      project('emulator', { globalSetup: ['test/support/google-emulators.ts'] }),
      project('e2e', { testTimeout: 90_000, fileParallelism: false, globalSetup: ['test/support/build.ts'] }),
    ],
  },
});
