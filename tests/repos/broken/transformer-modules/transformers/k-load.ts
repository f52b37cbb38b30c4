throw new Error("while loading");
