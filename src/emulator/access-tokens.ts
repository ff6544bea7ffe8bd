import { createHmac, generateKeySync } from 'node:crypto';
import type { Time } from './time.ts';

/** For whom an access token speaks, and what it may: scopes, parted by spaces. */
export type Access = { readonly email: string; readonly scope: string };

export type AccessTokens = {
  /** An OAuth access token for `Authorization: Bearer`, valid for an hour from now; to all but this emulator it is a text without meaning. */
  accessToken(access: Access): string;
  /** What a token of this emulator stands for; undefined where it is of another, was changed or has expired. */
  accessOf(token: string): Access | undefined;
};

type Sealed = Access & { readonly expiresAtMs: number };

const validMs = 3_600_000;
/** As Google's tokens begin. */
const prefix = 'ya29.';
const macBytes = 32;

/** A token holds what it stands for beside a code of it by a key of this emulator, so that none has to be remembered. */
export function createAccessTokens(time: Time): AccessTokens {
  const key = generateKeySync('hmac', { length: 8 * macBytes });
  const macOf = (content: Buffer) => createHmac('sha256', key).update(content).digest();
  return {
    accessToken({ email, scope }) {
      const sealed: Sealed = { email, scope, expiresAtMs: time.nowMs() + validMs };
      const content = Buffer.from(JSON.stringify(sealed));
      return prefix + Buffer.concat([macOf(content), content]).toString('base64url');
    },
    accessOf(token) {
      if (!token.startsWith(prefix)) return undefined;
      const bytes = Buffer.from(token.slice(prefix.length), 'base64url');
      const content = bytes.subarray(macBytes);
      if (!macOf(content).equals(bytes.subarray(0, macBytes))) return undefined;
      const { email, scope, expiresAtMs } = JSON.parse(content.toString()) as Sealed;
      return time.nowMs() < expiresAtMs ? { email, scope } : undefined;
    },
  };
}
