throw new Error("tests are not part of a benchmark");
