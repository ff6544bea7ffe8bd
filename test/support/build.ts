import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The deployables under test are what the sources say now. */
export default function setup(): void {
  execFileSync(process.execPath, [fileURLToPath(new URL('../../scripts/build.ts', import.meta.url))], { stdio: 'inherit' });
}
