import { createHash, generateKeyPair, type KeyObject, sign } from 'node:crypto';
import { promisify } from 'node:util';
import { type AccessTokens, createAccessTokens } from './access-tokens.ts';
import type { Time } from './time.ts';

export type TokenClaims = {
  /** Who is to take it. */
  readonly audience: string;
  /** Of the service account that it speaks for. */
  readonly email: string;
};

/** Makes tokens as accounts.google.com does, with keys of its own that last as long as the emulator. */
export type Identity = AccessTokens & {
  /** An OIDC token for `Authorization: Bearer`, valid for an hour from now. */
  token(claims: TokenClaims): Promise<string>;
  /** The public key, as https://www.googleapis.com/oauth2/v3/certs has it. */
  jwks(): Promise<{ readonly keys: readonly object[] }>;
};

type SigningKey = { readonly kid: string; readonly privateKey: KeyObject; readonly publicKey: KeyObject };

const validSeconds = 3_600;
const generate = promisify(generateKeyPair);
const signed = promisify(sign);

/** The key of OIDC tokens is made once it is needed: that takes a tenth of a second, which few emulators have to spend. */
export function createIdentity(time: Time): Identity {
  let made: Promise<SigningKey> | undefined;
  const signingKey = () => {
    made ??= makeKey();
    return made;
  };
  return {
    ...createAccessTokens(time),
    async token({ audience, email }) {
      const { kid, privateKey } = await signingKey();
      const iat = Math.floor(time.nowMs() / 1_000);
      const id = accountId(email);
      const claims = { iss: 'https://accounts.google.com', aud: audience, azp: id, sub: id, email, email_verified: true };
      const unsigned = [
        { alg: 'RS256', typ: 'JWT', kid },
        { ...claims, iat, exp: iat + validSeconds },
      ]
        .map(encoded)
        .join('.');
      const signature = await signed('RSA-SHA256', Buffer.from(unsigned), privateKey);
      return `${unsigned}.${signature.toString('base64url')}`;
    },
    async jwks() {
      const { kid, publicKey } = await signingKey();
      return { keys: [{ ...publicKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' }] };
    },
  };
}

async function makeKey(): Promise<SigningKey> {
  const pair = await generate('rsa', { modulusLength: 2_048 });
  const kid = createHash('sha256')
    .update(pair.publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex')
    .slice(0, 40);
  return { ...pair, kid };
}

const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');

/** A service account's unique id has 21 digits; ours follows from its address. */
function accountId(email: string): string {
  const digest = createHash('sha256').update(email).digest('hex');
  return `1${(BigInt(`0x${digest}`) % 10n ** 20n).toString().padStart(20, '0')}`;
}
