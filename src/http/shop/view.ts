/** What the shop's page is told, always whole: the sale, this browser's reservation, and why the last press was refused. */
import type { Flashgate } from '../../client/client.ts';
import { asked, type Refused, type Reservation, type Sale } from './calls.ts';
import type { Session } from './session.ts';

/**
 * `sale` is null while it cannot be told. `reservation` is null where this browser has none; `lost` where it had one that
 * gate and queue lost together. `refused` is of the press that was just made, or of the look itself.
 */
export type View = {
  sale: Sale | null;
  reservation: Reservation | null;
  lost: boolean;
  refused: Refused | null;
  /** Where to send the buyer to pay. */
  payAt?: string;
  /** The money was taken; the provider's word for it is on its way. */
  paid?: true;
};

export type Visit = { client: Flashgate; saleId: string; session: Session };

export async function look({ client, saleId, session }: Visit, refused: Refused | null = null): Promise<View> {
  const reservationId = session.holds[saleId];
  const [sale, reservation] = await Promise.all([
    asked(client.GET('/sales/{saleId}', { params: { path: { saleId } } })),
    reservationId === undefined
      ? undefined
      : asked(
          client.GET('/sales/{saleId}/reservations/{reservationId}', {
            params: { path: { saleId, reservationId }, query: { userId: session.buyer } },
          }),
        ),
  ]);
  const whyNot = reservation && 'refused' in reservation ? reservation.refused : null;
  const lost = whyNot?.code === 'reservation_not_found';
  return {
    sale: 'found' in sale ? sale.found : null,
    reservation: reservation && 'found' in reservation ? reservation.found : null,
    lost,
    refused: refused ?? ('refused' in sale ? sale.refused : lost ? null : whyNot),
  };
}
