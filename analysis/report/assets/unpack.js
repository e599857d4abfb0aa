// plotly, unpacked from the page itself by the browser's own DecompressionStream.
"use strict";
const Unpack = {
  plotly: async () => {
    const text = atob(document.getElementById("plotly").textContent);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  },
};
