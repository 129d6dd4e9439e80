// The page to sign in: the token goes to this host once; from then on a cookie that no script can read stands for it.
import { call } from './api.js';

const form = document.getElementById('sign-in');
const trouble = document.getElementById('trouble');
form.addEventListener('submit', async (event) => {
  event.preventDefault();
  trouble.textContent = '';
  try {
    await call('POST', '/ops/session', { token: new FormData(form).get('token') });
    location.reload();
  } catch (error) {
    trouble.textContent = error.message;
    form.elements.token.select();
  }
});
