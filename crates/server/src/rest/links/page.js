// The page works without this: it shows instants in the reader's own time zone.
const shown = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const words = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const units = [["day", 86400], ["hour", 3600], ["minute", 60]];

for (const time of document.querySelectorAll("time[datetime]")) {
  const at = Date.parse(time.dateTime);
  if (Number.isNaN(at)) continue;
  const seconds = (at - Date.now()) / 1000;
  const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? ["minute", 60];
  time.title = time.textContent;
  time.textContent = `${shown.format(at)} (${words.format(Math.round(seconds / size), unit)})`;
}
