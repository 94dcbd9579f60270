package preflight_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// observeUpdate runs a program and returns the update that its check receives and
// the standard error of the program.
func observeUpdate(t *testing.T, args []string, env map[string]string) (preflight.Update, string) {
	t.Helper()
	var update preflight.Update
	var stderr strings.Builder
	p := preflight.Program{Args: args, Env: env, Stdout: io.Discard, Stderr: &stderr, TerminationLog: missingLog(t)}
	p.Run(context.Background(), preflight.Check{Name: "A", Run: func(_ context.Context, t *preflight.T) error {
		update = t.Update()
		return nil
	}})
	return update, stderr.String()
}

func TestUpdateFromFlagsAndEnvironment(t *testing.T) {
	many := func(n int) string {
		facts := map[string]string{}
		for i := range n {
			facts[fmt.Sprint("f", i)] = ""
		}
		text, err := json.Marshal(facts)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	cases := map[string]struct {
		reason string
		path   string
		facts  string
		args   []string
		want   string
	}{
		"Nothing": {"The path and the facts are optional", "", "", nil, "[] map[]"},
		"Path": {
			"The path has the first and the last version", "4.19.3,4.20.0-rc.1,4.21.3+x", "", nil,
			"[4.19.3 4.20.0-rc.1 4.21.3+x] map[]",
		},
		"Facts":   {"Facts are strings by name", "", ` {"a":"b","c.d/e":"é\n"} `, nil, "[] map[a:b c.d/e:é\n]"},
		"NoFacts": {"An empty object contains no facts", "", "{}", nil, "[] map[]"},
		"Flags": {
			"Outside of a Job the flags describe the update", "", "",
			[]string{"--path", "4.20.5,4.21.3", "--fact", "a=b=c", "--fact=d="},
			"[4.20.5 4.21.3] map[a:b=c d:]",
		},
		"FlagOverrides": {
			"A flag overrides the environment and keeps the other facts", "4.20.5,4.21.3", `{"a":"1","b":"2"}`,
			[]string{"--path", "4.21.3", "--fact", "b=3"},
			"[4.21.3] map[a:1 b:3]",
		},
		"ManyFacts": {"At most 256 facts are allowed", "", many(257), nil, "PREFLIGHT_FACTS: more than 256 facts"},
		"LongFacts": {
			"At most 64 KiB of facts are allowed", "", `{"a":"` + strings.Repeat("x", 64<<10) + `"}`, nil,
			"PREFLIGHT_FACTS: 65544 bytes: want at most 65536",
		},
		"DuplicateFact": {"Readers differ in which duplicate they use", "", `{"a":"1","a":"2"}`, nil, `PREFLIGHT_FACTS: duplicate fact "a"`},
		"FactNumber":    {"A number is not a string", "", `{"a":1}`, nil, `PREFLIGHT_FACTS: fact "a": want a non-empty name and a string value`},
		"FactNull":      {"Null is not a string", "", `{"a":null}`, nil, `PREFLIGHT_FACTS: fact "a": want a non-empty name and a string value`},
		"FactObject": {
			"An object is not a string", "", `{"a":{"b":"c"}}`, nil,
			`PREFLIGHT_FACTS: fact "a": want a non-empty name and a string value`,
		},
		"FactUnnamed": {
			"A fact has a non-empty name", "", `{"":"b"}`, nil,
			`PREFLIGHT_FACTS: fact "": want a non-empty name and a string value`,
		},
		"FactsArray": {"An array is not an object", "", `["a"]`, nil, "PREFLIGHT_FACTS: want a JSON object of strings"},
		"FactsNull":  {"Null is not an object", "", `null`, nil, "PREFLIGHT_FACTS: want a JSON object of strings"},
		"FactsText":  {"Facts are JSON", "", `a=b`, nil, "PREFLIGHT_FACTS: want a JSON object of strings"},
		"FactsCut": {
			"An incomplete object is an error", "", `{"a":"b"`, nil,
			"PREFLIGHT_FACTS: want a JSON object of strings: unexpected end",
		},
		"FactCut": {"An incomplete fact is an error", "", `{"a":"b`, nil, `PREFLIGHT_FACTS: fact "a": invalid JSON`},
		"FactNoName": {
			"A name without quotes is an error", "", `{a:"b"}`, nil,
			"PREFLIGHT_FACTS: want a JSON object of strings: invalid JSON",
		},
		"FactsMore": {
			"Data after the object is an error", "", `{} {}`, nil,
			"PREFLIGHT_FACTS: want one JSON object of strings: unexpected data after it",
		},
		"PathGap": {
			"An empty version is an error", "4.20.5,,4.21.3", "", nil,
			`PREFLIGHT_UPDATE_PATH: version "": want versions like 4.21.3, separated by commas`,
		},
		"PathSpace": {
			"A space is not part of a version", "4.20.5, 4.21.3", "", nil,
			`PREFLIGHT_UPDATE_PATH: version " 4.21.3": want versions like 4.21.3, separated by commas`,
		},
		"PathLong": {
			"At most 32 versions are allowed", strings.Repeat("4.20.5,", 32) + "4.21.3", "", nil,
			"PREFLIGHT_UPDATE_PATH: more than 32 versions",
		},
		"FlagNoValue": {
			"A fact has a value", "", "",
			[]string{"--fact", "a"},
			`invalid value "a" for flag -fact: want NAME=VALUE (--help shows the flags)`,
		},
		"FlagBadPath": {
			"A flag is validated like the environment", "", "",
			[]string{"--path", ","},
			`invalid value "," for flag -path: version "": want versions like 4.21.3, separated by commas (--help shows the flags)`,
		},
		"FlagNotInJob": {
			"--name has no effect without --print-manifest", "", "",
			[]string{"--name", "a"},
			"--name and --namespace require --print-manifest",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			update, stderr := observeUpdate(t, tc.args, map[string]string{"PREFLIGHT_UPDATE_PATH": tc.path, "PREFLIGHT_FACTS": tc.facts})
			got := fmt.Sprint(update.Path, " ", update.Facts)
			if stderr != "" {
				got = strings.TrimSuffix(strings.TrimPrefix(stderr, "preflight: "), "\n")
			}
			if got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestUpdateIsACopy(t *testing.T) {
	shared := preflight.Update{Path: []string{"4.20.5", "4.21.3"}, Facts: map[string]string{"a": "b"}}
	check := preflight.Check{Name: "A", Run: func(_ context.Context, t *preflight.T) error {
		u := t.Update()
		u.Path[0], u.Facts["a"] = "changed", "changed"
		if again := t.Update(); again.Path[0] != "4.20.5" || again.Facts["a"] != "b" {
			t.Failf("got %v", again)
		}
		return nil
	}}
	if got := check.Evaluate(context.Background(), shared, nil); got.Outcome != preflight.Pass || shared.Path[0] != "4.20.5" ||
		shared.Facts["a"] != "b" {
		t.Errorf("got %q, and the update of the caller is %v: a check must not change it", outcomeLine(got), shared)
	}
}

func FuzzFacts(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `{"a":"b"}`, `{"a":"b","a":"c"}`, `{"a":1}`, `{"a":"b"}{`, "null", `{"\ud800":"x"}`,
		strings.Repeat("[", 100),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		update, stderr := observeUpdate(t, nil, map[string]string{"PREFLIGHT_FACTS": text})
		if stderr != "" {
			if strings.Count(stderr, "\n") != 1 || len(stderr) > 1024 || update.Facts != nil {
				t.Errorf("%q results in %q: want one line and no facts", text, stderr)
			}
			return
		}
		if text == "" {
			return
		}
		var want map[string]string
		if err := json.Unmarshal([]byte(text), &want); err != nil || !maps.Equal(update.Facts, want) {
			t.Errorf("%q results in %q, encoding/json %q, error %v", text, update.Facts, want, err)
		}
	})
}

func FuzzPath(f *testing.F) {
	for _, seed := range []string{"", "4.20.5", "4.20.5,4.21.3", ",", "4.20.5,", "é", "4.20.5\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		update, stderr := observeUpdate(t, nil, map[string]string{"PREFLIGHT_UPDATE_PATH": text})
		if stderr != "" && (strings.Count(stderr, "\n") != 1 || len(stderr) > 1024 || !utf8.ValidString(stderr)) {
			t.Errorf("%q results in %q: want one line", text, stderr)
		}
		if stderr == "" && strings.Join(update.Path, ",") != text || slices.Contains(update.Path, "") || len(update.Path) > 32 {
			t.Errorf("%q results in %q", text, update.Path)
		}
	})
}
