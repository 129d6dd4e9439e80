// Calls of the room's own routes. A change carries the session's CSRF token; whoever is signed out gets to sign in again.

/** A refusal, in the words of its problem document. */
export class Refused extends Error {}

let csrf = '';

/** @returns {Promise<{ csrf: string, expiresAt: string, rush: boolean }>} */
export async function session() {
  const known = await call('GET', '/ops/session');
  csrf = known.csrf;
  return known;
}

/**
 * @returns what the answer says; null when it says nothing
 * @throws {Refused | TypeError} the latter when the host cannot be reached
 */
export async function call(method, path, body) {
  const headers = {
    ...(method !== 'GET' && { 'x-csrf-token': csrf }),
    ...(body && { 'content-type': 'application/json' }),
  };
  const answer = await fetch(path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  if (answer.status === 204) return null;
  const said = await answer.json();
  if (answer.ok) return said;
  if (answer.status === 401 && path !== '/ops/session') location.reload(); // to the page to sign in
  throw new Refused(said.detail ?? said.title);
}
