import { performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const lookEveryMs = 5_000;
const busyShare = 0.02;

/** V8 keeps what a busy time took for as long as nothing is allocated after it; this gives it back once the process is idle. */
export function returnMemoryWhenIdle(): void {
  setFlagsFromString('--expose-gc');
  const collect: (options: object) => void = runInNewContext('gc');
  let before = performance.eventLoopUtilization();
  let wasBusy = true;
  const look = () => {
    const isBusy = performance.eventLoopUtilization(before).utilization > busyShare;
    if (wasBusy && !isBusy) collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    wasBusy = isBusy;
    // After the collection, which is no work of the emulator.
    before = performance.eventLoopUtilization();
  };
  setInterval(look, lookEveryMs).unref();
}
