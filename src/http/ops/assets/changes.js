// Pause, resume, resize, end, close: each asks first, by name, and says what will happen.
import { call } from './api.js';
import { $, number, say } from './elements.js';

const QUESTIONS = {
  pause: (sale) => [
    `Pause “${sale.name}”?`,
    'Nobody wins until it is resumed; buyers are told to come again. Holds can still be paid.',
    'Pause it',
  ],
  resume: (sale) => [`Resume “${sale.name}”?`, 'Buyers can win again at once.', 'Resume it'],
  resize: (sale) => [
    `Resize “${sale.name}”?`,
    `It has ${number(sale.total)} units. A total below what is held or sold is refused.`,
    'Resize it',
  ],
  end: (sale) => [
    `End “${sale.name}” for good?`,
    'Nobody can win any more, and it cannot be resumed. Holds can still be paid.',
    'End it',
  ],
  close: (sale) => [
    `Close “${sale.name}”?`,
    'Its gate is removed and what was not sold is withdrawn. Only an ended sale in which all that is live is paid can be closed.',
    'Close it',
  ],
};

/** @returns {Promise<{ total: number | null } | undefined>} undefined: left as it is */
function ask([title, text, yes], total) {
  const dialog = $('confirm');
  $('confirm-title').textContent = title;
  $('confirm-text').textContent = text;
  $('confirm-yes').textContent = yes;
  $('confirm-field').hidden = total === null;
  const field = $('confirm-total');
  field.disabled = total === null;
  field.required = total !== null;
  field.value = total ?? '';
  dialog.returnValue = '';
  dialog.showModal();
  (total === null ? $('confirm-no') : field).focus();
  return new Promise((resolve) => {
    dialog.addEventListener(
      'close',
      () => resolve(dialog.returnValue === 'yes' ? { total: total === null ? null : Number(field.value) } : undefined),
      { once: true },
    );
  });
}

/** @param current the sale as it was last told @param after called once something was changed */
export function changeButtons(current, after) {
  for (const [action, question] of Object.entries(QUESTIONS)) {
    $(action).addEventListener('click', async () => {
      const sale = current();
      if (!sale) return;
      const answer = await ask(question(sale), action === 'resize' ? sale.total : null);
      if (!answer) return;
      const path = `/ops/sales/${sale.saleId}`;
      try {
        const changed = await (action === 'resize'
          ? call('PUT', `${path}/total`, { total: answer.total })
          : call('POST', `${path}/${action}`));
        say(`“${changed.name}” is ${changed.state}, ${number(changed.total)} units.`);
      } catch (error) {
        say(`Not done: ${error.message}`);
      }
      after();
    });
  }
}

/** Which changes make sense now. */
export function allow({ state }) {
  const may = {
    pause: state === 'open' || state === 'scheduled',
    resume: state === 'paused',
    resize: state !== 'closed' && state !== 'ended',
    end: state !== 'closed' && state !== 'ended',
    close: state === 'ended',
  };
  for (const [action, allowed] of Object.entries(may)) $(action).disabled = !allowed;
}
