package junit_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/document/junit"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// prow has what Prow reads: the text of a failure, and no error elements.
type prow struct {
	Suites []struct {
		Name  string `xml:"name,attr"`
		Cases []struct {
			Class   string  `xml:"classname,attr"`
			Name    string  `xml:"name,attr"`
			Time    float64 `xml:"time,attr"`
			Failure *string `xml:"failure"`
			Skipped *string `xml:"skipped"`
			Output  *string `xml:"system-out"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

func TestWrite(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		cases  []junit.Case
		// want is "suite class/name: failure|skipped|passed, text" for each case.
		want []string
	}{
		"Pass": {reason: "it has no text", cases: []junit.Case{{
			Suite: "gate", Class: "c", Name: "A", Outcome: preflight.Pass,
			Text: "text",
		}}, want: []string{"gate c/A: passed, "}},
		"Warn": {reason: "a warning does not fail", cases: []junit.Case{{
			Suite: "gate", Class: "c", Name: "A", Outcome: preflight.Warn,
			Text: "text",
		}}, want: []string{"gate c/A: passed, text"}},
		"Fail": {reason: "Prow reads the text only", cases: []junit.Case{{
			Suite: "gate", Class: "c", Name: "A", Outcome: preflight.Fail,
			Text: "text",
		}}, want: []string{"gate c/A: failed, text"}},
		"Unknown": {reason: "an inconclusive check is not a pass", cases: []junit.Case{{
			Suite: "gate", Class: "c", Name: "A",
			Outcome: preflight.Unknown, Text: "text",
		}}, want: []string{"gate c/A: failed, text"}},
		"Later": {
			reason: "an outcome of a later version is not a pass",
			cases:  []junit.Case{{Suite: "gate", Class: "c", Name: "A", Outcome: "Later", Text: "text"}}, want: []string{"gate c/A: failed, text"},
		},
		"Skipped": {reason: "it does not apply", cases: []junit.Case{{
			Suite: "gate", Class: "c", Name: "A", Outcome: preflight.Skipped,
			Text: "text",
		}}, want: []string{"gate c/A: skipped, text"}},
		"SameNames": {reason: "GitLab counts only the first of one name", cases: []junit.Case{
			{Suite: "a", Class: "c", Name: "A"},
			{Suite: "b", Class: "c", Name: "A", Outcome: preflight.Fail},
		}, want: []string{"a c/A: failed, ", "b c/A #2: failed, "}},
		"Hostile": {
			reason: "texts are data", cases: []junit.Case{{
				Suite: "gate", Class: "c", Name: "]]><testcase/>", Type: "\x1b]0;title\a",
				Outcome: preflight.Fail, Text: "\x00\x1b[2J\u202e<error>]]>" + strings.Repeat("x", 1<<20),
			}},
			want: []string{"gate c/]]><testcase/>: failed, <error>]]>" + strings.Repeat("x", 50)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var text bytes.Buffer
			if err := (junit.Results{Time: "2026-11-21T08:00:00Z", Cases: tc.cases}).Write(&text); err != nil {
				t.Fatal(err)
			}
			if text.Len() > 64<<10 || strings.Contains(text.String(), "<error") || strings.ContainsAny(text.String(), "\x1b\u202e") {
				t.Errorf("%s: the document has %d bytes: %.500s", tc.reason, text.Len(), text.String())
			}
			var parsed prow
			if err := xml.Unmarshal(text.Bytes(), &parsed); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, suite := range parsed.Suites {
				for _, c := range suite.Cases {
					got = append(got, suite.Name+" "+c.Class+"/"+c.Name+": "+result(c.Failure, c.Skipped, c.Output))
				}
			}
			for i := range got {
				if len(got[i]) > 100 {
					got[i] = got[i][:len(tc.want[i])]
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func result(failure, skipped, output *string) string {
	switch {
	case failure != nil:
		return "failed, " + *failure
	case skipped != nil:
		return "skipped, " + *skipped
	case output != nil:
		return "passed, " + *output
	}
	return "passed, "
}

type broken struct{}

var errBroken = errors.New("broken pipe")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

// TestAttacksOnTexts puts control and direction characters into each text of the results.
func TestAttacksOnTexts(t *testing.T) {
	t.Parallel()
	const hostile = "a\x1b[2J\u009b1m\u202e\u2066\u2028\u2029\x00"
	results := junit.Results{Time: hostile, Properties: []junit.Property{{}}, Cases: []junit.Case{{}, {}}}
	results.Cases[1].Outcome = preflight.Fail
	for _, value := range []reflect.Value{
		reflect.ValueOf(&results.Properties[0]), reflect.ValueOf(&results.Cases[0]),
		reflect.ValueOf(&results.Cases[1]),
	} {
		for _, field := range value.Elem().Fields() {
			if field.Kind() == reflect.String && field.String() != string(preflight.Fail) {
				field.SetString(hostile)
			}
		}
	}
	var text bytes.Buffer
	if err := results.Write(&text); err != nil {
		t.Fatal(err)
	}
	for _, r := range text.String() {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Fatalf("the document has the character %U: %s", r, text.String())
		}
	}
}

func TestWriteFails(t *testing.T) {
	t.Parallel()
	if err := (junit.Results{Cases: []junit.Case{{Name: "A"}}}).Write(broken{}); !errors.Is(err, errBroken) {
		t.Errorf("got %v, want %v", err, errBroken)
	}
}
