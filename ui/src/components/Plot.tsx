// Runs over time as bars: successes below, failures above. A table has the same numbers for screen readers.
import type { Slice } from "../lib/plot";

const [WIDTH, HEIGHT, GAP] = [720, 130, 3];

export function Plot({ slices, label }: { slices: Slice[]; label: string }) {
  const most = Math.max(...slices.map((one) => one.good + one.bad + one.other), 1);
  const width = WIDTH / slices.length;
  const clock = (at: number) => new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const said = slices.filter((one) => one.good + one.bad + one.other > 0);
  return (
    <figure className="plot">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
        {slices.map((one, at) => {
          let y = HEIGHT;
          const bar = (value: number, name: string) => {
            const height = (value / most) * HEIGHT;
            y -= height;
            return (
              value > 0 && (
                <rect className={name} x={at * width} y={y} width={width - GAP} height={Math.max(height, 2)} />
              )
            );
          };
          return (
            <g key={one.from}>
              <title>{`${clock(one.from)}: ${one.good} completed, ${one.bad} failed, ${one.other} other`}</title>
              <rect className="ground" x={at * width} y={0} width={width - GAP} height={HEIGHT} />
              {bar(one.good, "good")}
              {bar(one.other, "other")}
              {bar(one.bad, "fail")}
            </g>
          );
        })}
      </svg>
      <figcaption className="row between small dim">
        <span>{clock(slices[0]?.from ?? 0)}</span>
        <span className="row">
          <span className="key good">completed</span>
          <span className="key fail">failed</span>
          <span className="key other">other</span>
          <span>highest bar: {most}</span>
        </span>
        <span>now</span>
      </figcaption>
      <table className="hidden-label">
        <tbody>
          {said.map((one) => (
            <tr key={one.from}>
              <th>{clock(one.from)}</th>
              <td>{one.good} completed</td>
              <td>{one.bad} failed</td>
              <td>{one.other} other</td>
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  );
}
