import { createPublicKey, type JsonWebKey } from 'node:crypto';
import { OAuth2Client } from 'google-auth-library';

export type OidcParts = {
  /** Whom the token must be for. */
  readonly audience: string;
  /** Whose token it must be. */
  readonly account: string;
  /** Where an emulator shows its keys, as `http://127.0.0.1:8086/oauth2/v3/certs`; Google's own keys when absent. */
  readonly certsUrl?: string | undefined;
};

const issuers = ['https://accounts.google.com', 'accounts.google.com'];

/**
 * Checks an OIDC token as Cloud Tasks and Pub/Sub send it: signed by Google, not over, for this audience, of this account.
 * @returns a function that throws what is wrong
 */
export function oidcVerifier({ audience, account, certsUrl }: OidcParts): (token: string) => Promise<void> {
  const client = new OAuth2Client();
  return async (token) => {
    const certificates = certsUrl === undefined ? (await client.getFederatedSignonCertsAsync()).certs : await certificatesOf(certsUrl);
    const ticket = await client.verifySignedJwtWithCertsAsync(token, certificates, audience, issuers);
    const { email, email_verified: isVerified } = ticket.getPayload() ?? {};
    if (email !== account || !isVerified) throw new Error(`the token is of ${email ?? 'no account'}, and must be of ${account}`);
  };
}

async function certificatesOf(url: string): Promise<Record<string, string>> {
  const response = await fetch(url);
  const { keys } = (await response.json()) as { readonly keys: readonly (JsonWebKey & { readonly kid: string })[] };
  const pemOf = (key: JsonWebKey) => String(createPublicKey({ key, format: 'jwk' }).export({ type: 'spki', format: 'pem' }));
  return Object.fromEntries(keys.map((key) => [key.kid, pemOf(key)]));
}
