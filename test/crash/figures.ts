export type CrashFigures = {
  /** Promises checked, one for each kill. */
  readonly cells: number;
  readonly kills: number;
  readonly lost: number;
  /** What came again although nothing says that it may. */
  readonly undocumentedRepeats: number;
  /** Runs with one protection removed in which something was lost or came again. */
  readonly controlsCaught: number;
};

/** Prints a table while it runs; passes if nothing was lost, nothing came again and every control was caught. */
export type CrashTest = (args: readonly string[]) => Promise<{ readonly figures: CrashFigures; readonly controls: number }>;
