// Says what its clock shows, every 20 ms by a clock that is never set.
setInterval(() => console.log((Date.now() / 1000).toFixed(6)), 20);
