import { printTable } from '../../../bench/measure/figures.ts';
import type { Cell } from './cells.ts';
import { type Finding, judge, repeatsIn } from './judge.ts';
import type { Sink } from './sink.ts';

/** What was found of each cell, over all that its consumer shows. */
export type Book = {
  /** Anything else than an effect that is not as expected. */
  lost(cell: Cell, text: string): void;
  repeated(cell: Cell, text: string): void;
  /** A cell that was gone through without its stop. */
  unreached(cell: Cell): void;
  /** One whose effects show nothing. */
  seen(cell: Cell): void;
  /** Looks at the effects of a cell, for good. */
  judge(cell: Cell): void;
  /** How many cells are broken, those of controls apart. */
  broken(): { readonly lost: number; readonly repeated: number };
  /** What is broken with one protection removed. */
  caught(without: Cell['without']): readonly string[];
  print(): void;
};

export function createBook(sink: Sink): Book {
  const findings: (Finding & { readonly cell: Cell })[] = [];
  const judged = new Set<Cell>();
  const unreached = new Set<Cell>();
  const add = (kind: Finding['kind']) => (cell: Cell, text: string) => void findings.push({ cell, kind, text });
  const rowOf = (cells: readonly Cell[]): string[] => {
    const repeats = cells.filter(({ cell }) => repeatsIn(sink.begins(cell)) > 0);
    const after = [...new Set(repeats.map(({ stop }) => stop))];
    const broken = new Set(findings.filter(({ cell }) => cells.includes(cell)).map(({ cell }) => cell));
    return [
      String(new Set(cells.map(({ stop }) => stop)).size),
      String(cells.length),
      String(cells.reduce((sum, { cell }) => sum + sink.begins(cell).length, 0)),
      String(cells.reduce((sum, { cell }) => sum + repeatsIn(sink.begins(cell)), 0)),
      String(broken.size),
      String(cells.filter((cell) => unreached.has(cell)).length),
      after.length > 4 ? `${after.slice(0, 4).join(', ')} and ${after.length - 4} more` : after.join(', '),
    ];
  };
  return {
    lost: add('lost'),
    repeated: add('repeated'),
    unreached: (cell) => void unreached.add(cell),
    seen: (cell) => void judged.add(cell),
    judge(cell) {
      judged.add(cell);
      findings.push(...judge(cell, sink.begins(cell.cell), sink.overlaps(cell.cell)).map((finding) => ({ ...finding, cell })));
    },
    broken() {
      const count = (kind: Finding['kind']) =>
        new Set(findings.filter((each) => each.kind === kind && each.cell.without === 'nothing').map(({ cell }) => cell)).size;
      return { lost: count('lost'), repeated: count('repeated') };
    },
    caught: (without) =>
      findings.filter(({ cell }) => cell.without === without).map(({ cell, kind, text }) => `${kind}: ${cell.cell}: ${text}`),
    print() {
      const cells = [...judged].filter(({ without }) => without === 'nothing');
      const groups = [...Map.groupBy(cells, ({ role, situation }) => JSON.stringify([role, situation])).values()];
      const head = ['killed', 'situation', 'awaits', 'cells', 'effects', 'repeats', 'broken', 'not reached', 'repeats after'];
      printTable([head, ...groups.map((group) => [group[0]?.role ?? '', group[0]?.situation ?? '', ...rowOf(group)])]);
      for (const { cell, kind, text } of findings) if (cell.without === 'nothing') console.log(`broken (${kind}): ${cell.cell}: ${text}`);
    },
  };
}
