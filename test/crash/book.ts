import { printTable } from '../../bench/measure/figures.ts';

/** What every cell tells of itself. */
export type BookedCell = {
  readonly cell: string;
  /** What was killed. */
  readonly role: string;
  readonly situation: string;
  readonly stop: string;
  /** The protection that a control does without, or 'nothing'. */
  readonly without: string;
};

export type Finding = { readonly kind: 'lost' | 'repeated'; readonly text: string };

/** What is seen of a cell. */
export type Seen<Cell> = {
  judge(cell: Cell): readonly Finding[];
  effects(cell: Cell): number;
  /** More effects than one each. */
  repeats(cell: Cell): number;
};

/** What was found of each cell, over all that is seen of it. */
export type Book<Cell extends BookedCell> = {
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
  /** Prints what the runs with one protection removed were caught by; returns how many were. */
  printControls(protections: readonly Cell['without'][]): number;
  print(): void;
};

export function createBook<Cell extends BookedCell>({ judge, effects, repeats }: Seen<Cell>): Book<Cell> {
  const findings: (Finding & { readonly cell: Cell })[] = [];
  const judged = new Set<Cell>();
  const unreached = new Set<Cell>();
  const add = (kind: Finding['kind']) => (cell: Cell, text: string) => void findings.push({ cell, kind, text });
  const rowOf = (cells: readonly Cell[]): string[] => {
    const after = [...new Set(cells.filter((cell) => repeats(cell) > 0).map(({ stop }) => stop))];
    const broken = new Set(findings.filter(({ cell }) => cells.includes(cell)).map(({ cell }) => cell));
    return [
      String(new Set(cells.map(({ stop }) => stop)).size),
      String(cells.length),
      String(cells.reduce((sum, cell) => sum + effects(cell), 0)),
      String(cells.reduce((sum, cell) => sum + repeats(cell), 0)),
      String(broken.size),
      String(cells.filter((cell) => unreached.has(cell)).length),
      after.length > 4 ? `${after.slice(0, 4).join(', ')} and ${after.length - 4} more` : after.join(', '),
    ];
  };
  const printControl = (without: Cell['without']): boolean => {
    const [first, ...others] = findings.filter(({ cell }) => cell.without === without);
    const what = first ? `${first.kind}: ${first.cell.cell}: ${first.text} (and ${others.length} more)` : 'NOT CAUGHT';
    console.log(`control without ${without}: ${what}`);
    return first !== undefined;
  };
  return {
    lost: add('lost'),
    repeated: add('repeated'),
    unreached: (cell) => void unreached.add(cell),
    seen: (cell) => void judged.add(cell),
    judge(cell) {
      judged.add(cell);
      findings.push(...judge(cell).map((finding) => ({ ...finding, cell })));
    },
    broken() {
      const count = (kind: Finding['kind']) =>
        new Set(findings.filter((each) => each.kind === kind && each.cell.without === 'nothing').map(({ cell }) => cell)).size;
      return { lost: count('lost'), repeated: count('repeated') };
    },
    printControls: (protections) => protections.filter(printControl).length,
    print() {
      const cells = [...judged].filter(({ without }) => without === 'nothing');
      const groups = [...Map.groupBy(cells, ({ role, situation }) => JSON.stringify([role, situation])).values()];
      const head = ['killed', 'situation', 'awaits', 'cells', 'effects', 'repeats', 'broken', 'not reached', 'repeats after'];
      printTable([head, ...groups.map((group) => [group[0]?.role ?? '', group[0]?.situation ?? '', ...rowOf(group)])]);
      for (const { cell, kind, text } of findings) if (cell.without === 'nothing') console.log(`broken (${kind}): ${cell.cell}: ${text}`);
    },
  };
}
