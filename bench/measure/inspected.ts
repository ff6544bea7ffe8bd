import type { CpuProfile } from './cpu-profile.ts';

export type Inspected = {
  start(): Promise<void>;
  /** What the process did since the start. */
  stop(): Promise<CpuProfile>;
  close(): void;
};

type Answer = { readonly id?: number; readonly result?: unknown; readonly error?: { readonly message: string } };

/** The profiler of another process, which was started with `--inspect=PORT`: what it did before is no part of the profile. */
export async function inspected(port: number): Promise<Inspected> {
  const answer = await fetch(`http://127.0.0.1:${port}/json/list`);
  const [target] = (await answer.json()) as { readonly webSocketDebuggerUrl: string }[];
  const socket = new WebSocket(target?.webSocketDebuggerUrl ?? '');
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', reject);
  });
  let calls = 0;
  const call = (method: string) => {
    const id = ++calls;
    return new Promise<unknown>((resolve, reject) => {
      const onMessage = ({ data }: MessageEvent) => {
        const { id: answered, result, error }: Answer = JSON.parse(String(data));
        if (answered !== id) return;
        socket.removeEventListener('message', onMessage);
        if (error) reject(new Error(`${method}: ${error.message}`));
        else resolve(result);
      };
      socket.addEventListener('message', onMessage);
      socket.send(JSON.stringify({ id, method }));
    });
  };
  await call('Profiler.enable');
  return {
    start: async () => void (await call('Profiler.start')),
    stop: async () => ((await call('Profiler.stop')) as { readonly profile: CpuProfile }).profile,
    close: () => socket.close(),
  };
}
