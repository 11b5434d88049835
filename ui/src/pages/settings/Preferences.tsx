// Your notifications: which events, in the browser and through each of your channels.
import { useMutation, useQuery } from "@tanstack/react-query";
import { api, type Schemas } from "../../api/client";
import { queries } from "../../api/queries";
import { Got } from "../../components/Loading";
import { Trouble } from "../../components/Trouble";
import { useNoticePermission } from "../../lib/notices";
import { changed, useListed } from "./Listed";

type Wishes = Schemas["Preferences"];
export type Channel = Schemas["Channel"];
export type Topic = Schemas["Topic"];

export const CHANNELS = "/channels";
export const TOPICS: Record<Topic, string> = {
  gate_opened: "an approval is requested",
  gate_escalated: "an approval is escalated",
  gate_answered: "an approval was answered",
  gate_expired: "an approval was not answered in time",
  run_failed: "a run failed",
};

/** Nested below the channels' key, so that adding a channel reloads both. */
const KEY = ["settings", CHANNELS, "preferences"];
const ALL = Object.keys(TOPICS) as Topic[];

const BROWSER: Record<string, string> = {
  granted: "This browser notifies you while the page is open in the background.",
  denied: "This browser blocks notifications from this page. Change it in the browser’s settings for this site.",
  missing: "This browser does not support notifications.",
};

export function Preferences() {
  const query = useQuery({ queryKey: KEY, queryFn: () => api<Wishes>("/preferences"), staleTime: 0 });
  const channels = useListed<Channel>(CHANNELS);
  const notices = useNoticePermission();
  const change = useMutation({
    // In sequence: each request contains all events of a channel.
    scope: { id: "preferences" },
    mutationKey: KEY,
    mutationFn: (body: Partial<Wishes>) => api<Wishes>("/preferences", { method: "PATCH", body }),
    onMutate: async (body) => {
      await queries.cancelQueries({ queryKey: KEY });
      queries.setQueryData(
        KEY,
        (now: Wishes | undefined) =>
          now && { browser: body.browser ?? now.browser, channels: { ...now.channels, ...body.channels } },
      );
    },
    // While another change is in flight, a response without it would revert it on screen.
    onSettled: () => (queries.isMutating({ mutationKey: KEY }) === 1 ? changed(CHANNELS) : undefined),
  });
  const names = new Map((channels.data ?? []).map((one) => [one.id, one.name]));
  return (
    <section className="card flush">
      <div className="card-head">
        <div className="grow">
          <h2>Your notifications</h2>
          <p className="small dim">{BROWSER[notices.state] ?? "This browser has not been asked for permission yet."}</p>
        </div>
        {notices.state === "default" && (
          <button type="button" onClick={notices.ask}>
            Notify me in the browser
          </button>
        )}
      </div>
      {change.error && <Trouble error={change.error} />}
      <Got query={query}>
        {(wishes) => {
          const places = [
            {
              id: "",
              name: "Browser",
              topics: wishes.browser ?? [],
              put: (topics: Topic[]): Partial<Wishes> => ({ browser: topics }),
            },
            ...Object.entries(wishes.channels ?? {}).map(([id, topics]) => ({
              id,
              name: names.get(id) ?? id,
              topics,
              put: (topics: Topic[]): Partial<Wishes> => ({ channels: { [id]: topics } }),
            })),
          ];
          return (
            <div className="table-box" tabIndex={0}>
              <table>
                <thead>
                  <tr>
                    <th>When</th>
                    {places.map((place) => (
                      <th key={place.id}>{place.name}</th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {ALL.map((topic) => (
                    <tr key={topic}>
                      <td>{TOPICS[topic]}</td>
                      {places.map((place) => (
                        <td key={place.id}>
                          <input
                            type="checkbox"
                            aria-label={`${place.name}: ${TOPICS[topic]}`}
                            checked={place.topics.includes(topic)}
                            onChange={(event) =>
                              change.mutate(
                                place.put(
                                  event.target.checked
                                    ? [...place.topics, topic]
                                    : place.topics.filter((one) => one !== topic),
                                ),
                              )
                            }
                          />
                        </td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          );
        }}
      </Got>
    </section>
  );
}
