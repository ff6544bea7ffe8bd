export type CpuProfile = {
  readonly nodes: readonly { readonly id: number; readonly callFrame: CallFrame }[];
  readonly samples?: readonly number[] | undefined;
  readonly timeDeltas?: readonly number[] | undefined;
};
export type CallFrame = { readonly functionName: string; readonly url: string; readonly lineNumber: number };

/** Rows of a share and its key, the largest first; a share is of the time in which the process was not idle. */
export function selfTimes(
  { nodes, samples = [], timeDeltas = [] }: CpuProfile,
  keyOf: (frame: CallFrame) => readonly string[],
): string[][] {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const totals = new Map<string, number>();
  let busy = 0;
  for (const [index, id] of samples.entries()) {
    const frame = frames.get(id);
    if (!frame || frame.functionName === '(idle)') continue;
    const spent = timeDeltas[index] ?? 0;
    const key = keyOf(frame).join('\t');
    totals.set(key, (totals.get(key) ?? 0) + spent);
    busy += spent;
  }
  return [...totals].sort(([, a], [, b]) => b - a).map(([key, spent]) => [`${((100 * spent) / busy).toFixed(1)} %`, ...key.split('\t')]);
}

/** Of the time that was sampled. */
export function busyShare({ nodes, samples = [], timeDeltas = [] }: CpuProfile): number {
  const idle = new Set(nodes.flatMap(({ id, callFrame }) => (callFrame.functionName === '(idle)' ? [id] : [])));
  const spent = (counts: (id: number) => boolean) =>
    samples.reduce((sum, id, index) => (counts(id) ? sum + (timeDeltas[index] ?? 0) : sum), 0);
  return spent((id) => !idle.has(id)) / spent(() => true);
}

/** A function's name and its place, from the root of its package or of ours. */
export const functionOf = ({ functionName, url, lineNumber }: CallFrame): readonly string[] => [
  functionName || '(anonymous)',
  url === '' ? '' : `${url.replace(/^.*\/(?:node_modules|dist\/src|(?=(?:src|bench)\/))\/?/, '')}:${lineNumber + 1}`,
];
