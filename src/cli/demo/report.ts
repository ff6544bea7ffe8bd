export type DemoResult = {
  readonly published: number;
  readonly effects: number;
  readonly duplicatesInjected: number;
  readonly duplicatesSuppressed: number;
  readonly lost: number;
  readonly doubled: number;
  readonly outOfOrder: number;
  readonly early: number;
  readonly seconds: number;
};

/** On a terminal one line that is drawn again; elsewhere a line now and then. */
export function progressBar(total: number): { show(done: number, note: string): void; end(): void } {
  const width = 40;
  let shownTenths = -1;
  return {
    show(done, note) {
      const share = Math.min(done / total, 1);
      const bar = '█'.repeat(Math.round(share * width)).padEnd(width, '░');
      if (process.stderr.isTTY) process.stderr.write(`\r${bar} ${done}/${total} ${note.padEnd(40)}`);
      else if (Math.floor(share * 10) > shownTenths) process.stderr.write(`${done}/${total} ${note}\n`);
      shownTenths = Math.max(shownTenths, Math.floor(share * 10));
    },
    end: () => void (process.stderr.isTTY && process.stderr.write('\n')),
  };
}

export function table(rows: readonly (readonly [name: string, value: string | number, meaning: string])[]): string {
  const widest = Math.max(...rows.map(([name]) => name.length));
  const widestValue = Math.max(...rows.map(([, value]) => String(value).length));
  return rows.map(([name, value, meaning]) => `  ${name.padEnd(widest)}  ${String(value).padStart(widestValue)}  ${meaning}`).join('\n');
}
