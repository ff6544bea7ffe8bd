export type Tier = 'A' | 'B' | 'C';

/** One thing that was looked at. Without findings it holds. */
export type Check = { readonly tier: Tier; readonly name: string; readonly findings: readonly string[] };

export const failed = (checks: readonly Check[]): readonly Check[] => checks.filter(({ findings }) => findings.length > 0);
