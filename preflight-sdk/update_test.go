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

// told runs a program and gives the update that its check sees, or else what
// the program says against it.
func told(t *testing.T, args []string, env map[string]string) (preflight.Update, string) {
	t.Helper()
	var update preflight.Update
	var stderr strings.Builder
	p := preflight.Program{Args: args, Env: env, Stdout: io.Discard, Stderr: &stderr, TerminationLog: absent(t)}
	p.Run(context.Background(), preflight.Check{Name: "A", Run: func(_ context.Context, t *preflight.T) error {
		update = t.Update()
		return nil
	}})
	return update, stderr.String()
}

func TestWhatIsToldOfTheUpdate(t *testing.T) {
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
		"Nothing":      {"What nobody knows is not there", "", "", nil, "[] map[]"},
		"Path":         {"The versions on the way, with the ends", "4.19.3,4.20.0-rc.1,4.21.3+x", "", nil, "[4.19.3 4.20.0-rc.1 4.21.3+x] map[]"},
		"Facts":        {"Facts are strings by name", "", ` {"a":"b","c.d/e":"é\n"} `, nil, "[] map[a:b c.d/e:é\n]"},
		"NoFacts":      {"An empty object has no facts", "", "{}", nil, "[] map[]"},
		"Flags":        {"On a laptop flags tell", "", "", []string{"--path", "4.20.5,4.21.3", "--fact", "a=b=c", "--fact=d="}, "[4.20.5 4.21.3] map[a:b=c d:]"},
		"FlagsOver":    {"A flag goes over the environment, and leaves the other facts", "4.20.5,4.21.3", `{"a":"1","b":"2"}`, []string{"--path", "4.21.3", "--fact", "b=3"}, "[4.21.3] map[a:1 b:3]"},
		"ManyFacts":    {"There are at most 256 facts", "", many(257), nil, "PREFLIGHT_FACTS: more than 256 facts"},
		"LongFacts":    {"Facts have at most 64 KiB", "", `{"a":"` + strings.Repeat("x", 64<<10) + `"}`, nil, "PREFLIGHT_FACTS: 65544 bytes: want at most 65536"},
		"FactTwice":    {"Which one would count is a guess", "", `{"a":"1","a":"2"}`, nil, `PREFLIGHT_FACTS: fact "a" is there twice`},
		"FactNumber":   {"A fact is a string", "", `{"a":1}`, nil, `PREFLIGHT_FACTS: fact "a": want a name, and a string as its value`},
		"FactNull":     {"Null is no string, not even an empty one", "", `{"a":null}`, nil, `PREFLIGHT_FACTS: fact "a": want a name, and a string as its value`},
		"FactObject":   {"A fact is no object", "", `{"a":{"b":"c"}}`, nil, `PREFLIGHT_FACTS: fact "a": want a name, and a string as its value`},
		"FactUnnamed":  {"A fact has a name", "", `{"":"b"}`, nil, `PREFLIGHT_FACTS: fact "": want a name, and a string as its value`},
		"FactsArray":   {"Facts are an object", "", `["a"]`, nil, "PREFLIGHT_FACTS: want a JSON object of strings"},
		"FactsNull":    {"Null is no object", "", `null`, nil, "PREFLIGHT_FACTS: want a JSON object of strings"},
		"FactsText":    {"Facts are JSON", "", `a=b`, nil, "PREFLIGHT_FACTS: want a JSON object of strings"},
		"FactsCut":     {"Half of the facts are none", "", `{"a":"b"`, nil, "PREFLIGHT_FACTS: want a JSON object of strings, and it does not end"},
		"FactCut":      {"Half of a fact is none", "", `{"a":"b`, nil, `PREFLIGHT_FACTS: fact "a": not JSON`},
		"FactNoName":   {"A name is a string", "", `{a:"b"}`, nil, "PREFLIGHT_FACTS: want a JSON object of strings, and it is not JSON"},
		"FactsMore":    {"One object is all", "", `{} {}`, nil, "PREFLIGHT_FACTS: want one JSON object of strings, and there is more behind it"},
		"PathGap":      {"A version that is missing is a slip", "4.20.5,,4.21.3", "", nil, `PREFLIGHT_UPDATE_PATH: version "": want versions like 4.21.3, with commas between them`},
		"PathSpace":    {"There is no space between versions", "4.20.5, 4.21.3", "", nil, `PREFLIGHT_UPDATE_PATH: version " 4.21.3": want versions like 4.21.3, with commas between them`},
		"PathLong":     {"A path has at most 32 versions", strings.Repeat("4.20.5,", 32) + "4.21.3", "", nil, "PREFLIGHT_UPDATE_PATH: more than 32 versions"},
		"FlagNoValue":  {"A fact has a value", "", "", []string{"--fact", "a"}, `invalid value "a" for flag -fact: want NAME=VALUE (--help shows the flags)`},
		"FlagBadPath":  {"A flag is held to the same", "", "", []string{"--path", ","}, `invalid value "," for flag -path: version "": want versions like 4.21.3, with commas between them (--help shows the flags)`},
		"FlagNotInJob": {"--name has nothing to name", "", "", []string{"--name", "a"}, "--name and --namespace are for --print-manifest"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			update, said := told(t, tc.args, map[string]string{"PREFLIGHT_UPDATE_PATH": tc.path, "PREFLIGHT_FACTS": tc.facts})
			got := fmt.Sprint(update.Path, " ", update.Facts)
			if said != "" {
				got = strings.TrimSuffix(strings.TrimPrefix(said, "preflight: "), "\n")
			}
			if got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestUpdateIsTheCheckersOwn(t *testing.T) {
	shared := preflight.Update{Path: []string{"4.20.5", "4.21.3"}, Facts: map[string]string{"a": "b"}}
	check := preflight.Check{Name: "A", Run: func(_ context.Context, t *preflight.T) error {
		u := t.Update()
		u.Path[0], u.Facts["a"] = "changed", "changed"
		if again := t.Update(); again.Path[0] != "4.20.5" || again.Facts["a"] != "b" {
			t.Failf("got %v", again)
		}
		return nil
	}}
	if got := check.Evaluate(context.Background(), shared, nil); got.Outcome != preflight.Pass || shared.Path[0] != "4.20.5" || shared.Facts["a"] != "b" {
		t.Errorf("got %q, and the caller's is %v: what a check does to it is its own business", say(got), shared)
	}
}

func FuzzFacts(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"a":"b"}`, `{"a":"b","a":"c"}`, `{"a":1}`, `{"a":"b"}{`, "null", `{"\ud800":"x"}`, strings.Repeat("[", 100)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		update, said := told(t, nil, map[string]string{"PREFLIGHT_FACTS": text})
		if said != "" {
			if strings.Count(said, "\n") != 1 || len(said) > 1024 || update.Facts != nil {
				t.Errorf("%q gives %q: want one line, and no facts", text, said)
			}
			return
		}
		if text == "" {
			return
		}
		var want map[string]string
		if err := json.Unmarshal([]byte(text), &want); err != nil || !maps.Equal(update.Facts, want) {
			t.Errorf("%q gives %q, encoding/json %q, error %v", text, update.Facts, want, err)
		}
	})
}

func FuzzPath(f *testing.F) {
	for _, seed := range []string{"", "4.20.5", "4.20.5,4.21.3", ",", "4.20.5,", "é", "4.20.5\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		update, said := told(t, nil, map[string]string{"PREFLIGHT_UPDATE_PATH": text})
		if said != "" && (strings.Count(said, "\n") != 1 || len(said) > 1024 || !utf8.ValidString(said)) {
			t.Errorf("%q gives %q: want one line", text, said)
		}
		if said == "" && strings.Join(update.Path, ",") != text || slices.Contains(update.Path, "") || len(update.Path) > 32 {
			t.Errorf("%q gives %q", text, update.Path)
		}
	})
}
