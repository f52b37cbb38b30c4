interface Source {
  content: string;
  path: string;
  sha256: string;
}

export default {
  name: "rivers",
  transform({ sources }: { sources: { rivers: Source } }) {
    const lines = sources.rivers.content.trim().split("\n");
    return lines.map((line) => {
      const [city, river] = line.split(": ");
      return {
        id: `rivers.${city.toLowerCase()}`,
        prompt: `Which river flows through ${city}?`,
        evaluate: { kind: "contains", expected: river },
      };
    });
  },
};
