// Passes requests on to a server with a key: the conformance suite has none to show. Prints its port.
// Arguments: the server's address, the key.
import http from "node:http";

const [url, key] = process.argv.slice(2);
const target = new URL(url);
const proxy = http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${key}` };
  // To the server this is its own address. Any other name is left for it to refuse.
  if (headers.host === `localhost:${proxy.address().port}`) headers.host = target.host;
  if (headers.origin === `http://localhost:${proxy.address().port}`) headers.origin = target.origin;
  const { hostname, port } = target;
  const onward = http.request({ hostname, port, path: request.url, method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  onward.on("error", () => response.destroy());
  request.pipe(onward);
});
proxy.listen(0, "127.0.0.1", () => console.log(proxy.address().port));
