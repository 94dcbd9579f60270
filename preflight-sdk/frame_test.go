package preflight_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// wire is the document as WIRE.md has it, told apart from the SDK's own type
// so that a renamed field does not go unnoticed.
type wire struct {
	State     string `json:"state"`
	RunID     string `json:"runID"`
	Truncated bool   `json:"truncated"`
	Findings  []struct {
		Name        string             `json:"name"`
		Outcome     preflight.Outcome  `json:"outcome"`
		Reason      string             `json:"reason"`
		Message     string             `json:"message"`
		Remediation string             `json:"remediation"`
		URL         string             `json:"url"`
		Objects     []preflight.Object `json:"objects"`
		Evidence    map[string]string  `json:"evidence"`
	} `json:"findings"`
}

// result turns the JSON of a vector into what ParseFrame should give.
func (w wire) result() preflight.Result {
	r := preflight.Result{State: w.State, RunID: w.RunID, Truncated: w.Truncated}
	for _, f := range w.Findings {
		r.Findings = append(r.Findings, preflight.Finding{
			Name: f.Name, Outcome: f.Outcome, Reason: f.Reason, Message: f.Message,
			Remediation: f.Remediation, URL: f.URL, Objects: f.Objects, Evidence: f.Evidence,
		})
	}
	return r
}

// diff compares by JSON, to which nil and empty are the same; empty when got
// is as wanted.
func diff(t *testing.T, got, want any) string {
	t.Helper()
	g, w := indented(t, got), indented(t, want)
	if g == w {
		return ""
	}
	return fmt.Sprintf("got %s\nwant %s", g, w)
}

func indented(t *testing.T, value any) string {
	t.Helper()
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func vectors(tb testing.TB, kind string) []string {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "wire", kind, "*.txt"))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no vectors of kind %s: %v", kind, err)
	}
	return paths
}

func read(tb testing.TB, path string) []byte {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// The frozen ones are what the first released implementations wrote, captured
// from their processes: clusters run them for years, so they never change.
func TestParseFrameValidVectors(t *testing.T) {
	for _, path := range append(vectors(t, "valid"), vectors(t, "frozen")...) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var want wire
			if err := json.Unmarshal(read(t, strings.TrimSuffix(path, ".txt")+".json"), &want); err != nil {
				t.Fatal(err)
			}
			got, err := preflight.ParseFrame(read(t, path))
			if err != nil {
				t.Fatalf("ParseFrame: %v", err)
			}
			if d := diff(t, got, want.result()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestParseFrameInvalidVectors(t *testing.T) {
	// The words of an error by which an administrator knows what it is.
	words := map[string]string{
		"NoFrame":  "no complete preflight frame",
		"Damaged":  "damaged preflight frame",
		"Version":  "preflight frame of wire version 2: only version 1 is known here",
		"Encoding": `preflight frame with unknown encoding "zstd"`,
		"Document": "result",
		"TooLong":  "preflight frame with more than 1048576 bytes of JSON",
	}
	for _, path := range vectors(t, "invalid") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			kind := strings.TrimSpace(string(read(t, strings.TrimSuffix(path, ".txt")+".error")))
			got, err := preflight.ParseFrame(read(t, path))
			if err == nil {
				t.Fatalf("ParseFrame gave %+v, want the error %s", got, kind)
			}
			if words[kind] == "" || !strings.Contains(err.Error(), words[kind]) {
				t.Errorf("error %q, want one that says %q (%s)", err, words[kind], kind)
			}
			if errors.Is(err, preflight.ErrNoFrame) != (kind == "NoFrame") {
				t.Errorf("error %q is ErrNoFrame: %t, want %s", err, errors.Is(err, preflight.ErrNoFrame), kind)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q is more than one line", err)
			}
		})
	}
}

// findings are a pass and fails after it, n together, with all that can be
// left out.
func findings(n int, message, evidence func(seed int) string) []preflight.Finding {
	out := make([]preflight.Finding, n)
	for i := range out {
		out[i] = preflight.Finding{
			Name:     fmt.Sprintf("Check%d", i),
			Outcome:  preflight.Fail,
			Reason:   "Because",
			Message:  message(i),
			Objects:  []preflight.Object{{APIVersion: "v1", Kind: "Secret", Name: "a"}},
			Evidence: map[string]string{"text": evidence(i + n)},
		}
	}
	out[0].Outcome = preflight.Pass
	return out
}

// noise makes text that does not compress.
func noise(length int) func(seed int) string {
	return func(seed int) string {
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		text := make([]byte, length)
		for i := range text {
			text[i] = byte(' ' + 1 + random.IntN(94))
		}
		return string(text)
	}
}

// plain makes text that compresses.
func plain(length int) func(seed int) string {
	return func(int) string { return strings.Repeat("x", length) }
}

func TestFrameLeavesOutInOrder(t *testing.T) {
	type have struct{ evidencePass, evidenceFail, objects, wholeMessage, message, names bool }
	type want struct {
		have      have
		truncated bool
	}
	cases := map[string]struct {
		reason   string
		findings []preflight.Finding
		budget   int
		want     want
	}{
		"Fits": {
			reason:   "What fits is left as it is",
			findings: findings(2, plain(20), plain(20)),
			want:     want{have{true, true, true, true, true, true}, false},
		},
		"FitsCompressed": {
			reason:   "What only fits when compressed is compressed, before anything is left out",
			findings: findings(2, plain(9000), plain(20)),
			want:     want{have{true, true, true, true, true, true}, false},
		},
		"EvidenceOfPasses": {
			reason:   "The evidence of a pass is missed least",
			findings: findings(2, plain(20), noise(400)),
			budget:   900,
			want:     want{have{false, true, true, true, true, true}, true},
		},
		"EvidenceAndObjects": {
			reason:   "Evidence goes before the message",
			findings: findings(2, noise(300), noise(600)),
			budget:   1100,
			want:     want{have{false, false, false, true, true, true}, true},
		},
		"EndsOfMessages": {
			reason:   "The head of a long message says more than none",
			findings: findings(2, noise(3000), plain(20)),
			budget:   1200,
			want:     want{have{false, false, false, false, true, true}, true},
		},
		"Messages": {
			reason:   "Name, outcome and reason are left of each check",
			findings: findings(40, noise(300), plain(20)),
			budget:   512,
			want:     want{have{names: true}, true},
		},
		"Names": {
			reason:   "At last one finding stands for all",
			findings: findings(900, plain(20), plain(20)),
			budget:   1024,
			want:     want{have{wholeMessage: true, message: true}, true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			line, err := preflight.Result{State: preflight.StateFinal, Findings: tc.findings}.Frame(tc.budget)
			if err != nil {
				t.Fatal(err)
			}
			result, err := preflight.ParseFrame(line)
			if err != nil {
				t.Fatal(err)
			}
			first, last := result.Findings[0], result.Findings[len(result.Findings)-1]
			got := want{have{
				evidencePass: first.Evidence != nil,
				evidenceFail: last.Evidence != nil,
				objects:      last.Objects != nil,
				wholeMessage: last.Message != "" && !strings.HasSuffix(last.Message, "…"),
				message:      last.Message != "",
				names:        len(result.Findings) == len(tc.findings),
			}, result.Truncated}
			if got != tc.want {
				t.Errorf("%s: got %+v, want %+v", tc.reason, got, tc.want)
			}
			if last.Outcome != preflight.Fail || !result.Agrees(preflight.ExitFail) {
				t.Errorf("%s: outcome %s, want Fail", tc.reason, last.Outcome)
			}
		})
	}
}

func TestFrameOfTooManyChecksCounts(t *testing.T) {
	many := findings(1000, plain(20), plain(20))
	for i := range many {
		many[i].Outcome = preflight.Pass
	}
	many[3].Outcome = preflight.Warn
	many[500].Outcome = preflight.Unknown
	line, err := preflight.Result{State: preflight.StateFinal, RunID: strings.Repeat("x", 64), Findings: many}.Frame(512)
	if err != nil {
		t.Fatal(err)
	}
	got, err := preflight.ParseFrame(line)
	if err != nil {
		t.Fatal(err)
	}
	want := preflight.Result{
		State: preflight.StateFinal, RunID: strings.Repeat("x", 64), Truncated: true,
		Findings: []preflight.Finding{{
			Name: "Preflight", Outcome: preflight.Unknown, Reason: "ResultTooLong",
			Message: "1000 checks: 0 Fail, 1 Unknown, 1 Warn, 0 Skipped, 998 Pass; their names are in the log",
		}},
	}
	if d := diff(t, got, want); d != "" {
		t.Error(d)
	}
}

func TestFrameRefuses(t *testing.T) {
	good := preflight.Finding{Name: "Good", Outcome: preflight.Pass}
	cases := map[string]struct {
		reason string
		result preflight.Result
		budget int
		want   string
	}{
		"Budget": {
			reason: "Less than 512 bytes cannot hold every result",
			result: preflight.Result{State: preflight.StateFinal, Findings: []preflight.Finding{good}},
			budget: 511,
			want:   "budget of 511 bytes for a frame: want at least 512",
		},
		"State": {
			reason: "A reader must know whether it was the last word",
			result: preflight.Result{Findings: []preflight.Finding{good}},
			want:   `cannot frame the result: state "": want "running" or "final"`,
		},
		"NoFindings": {
			reason: "Nothing found must not look like a pass",
			result: preflight.Result{State: preflight.StateFinal},
			want:   "cannot frame the result: final result without findings",
		},
		"Name": {
			reason: "An administrator must be able to type the name",
			result: preflight.Result{State: preflight.StateFinal, Findings: []preflight.Finding{{Name: "a b"}}},
			want:   `cannot frame the result: finding 1: name "a b": want at most 128 bytes that match ^[A-Z][A-Za-z0-9.-]*$`,
		},
		"Twice": {
			reason: "A name stands for one finding",
			result: preflight.Result{State: preflight.StateFinal, Findings: []preflight.Finding{good, good}},
			want:   `cannot frame the result: finding "Good" is there twice`,
		},
		"Reason": {
			reason: "A reason is a word",
			result: preflight.Result{State: preflight.StateFinal, Findings: []preflight.Finding{{Name: "A", Reason: strings.Repeat("x", 129)}}},
			want:   `cannot frame the result: finding "A": reason of 129 bytes: want at most 128`,
		},
		"RunID": {
			reason: "A run ID is a word",
			result: preflight.Result{State: preflight.StateFinal, RunID: "a b", Findings: []preflight.Finding{good}},
			want:   `cannot frame the result: run ID "a b": want at most 64 letters, digits, dots, dashes and underscores`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			line, err := tc.result.Frame(tc.budget)
			if err == nil || err.Error() != tc.want {
				t.Errorf("%s: got %q and the error %v, want %q", tc.reason, line, err, tc.want)
			}
		})
	}
}

// randomResult is any result that may be framed.
func randomResult(random *rand.Rand) preflight.Result {
	outcomes := []preflight.Outcome{preflight.Pass, preflight.Warn, preflight.Fail, preflight.Unknown, preflight.Skipped}
	text := func(limit int) string {
		runes := []rune("ab c<>&\"\\\n\t\x00é☃𝄞\u2028preflight/1 json 2 ")
		out := make([]rune, random.IntN(limit+1))
		for i := range out {
			out[i] = runes[random.IntN(len(runes))]
		}
		return string(out)
	}
	r := preflight.Result{State: preflight.StateFinal, RunID: fmt.Sprint(random.Uint64())}
	for i := range 1 + random.IntN(40) {
		f := preflight.Finding{
			Name: fmt.Sprintf("Check%d", i), Outcome: outcomes[random.IntN(len(outcomes))], Reason: "R",
			Message: text(700), Remediation: text(300), URL: text(100),
		}
		for range random.IntN(3) {
			f.Objects = append(f.Objects, preflight.Object{APIVersion: "v1", Kind: text(9), Name: text(9)})
		}
		if random.IntN(2) == 0 {
			f.Evidence = map[string]string{text(5): text(500), "k": text(50)}
		}
		r.Findings = append(r.Findings, f)
	}
	return r
}

func TestFrameKeepsToEveryBudgetAndIsFoundInNoise(t *testing.T) {
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 7))
		result := randomResult(random)
		budget := 512 + random.IntN(40000)
		line, err := result.Frame(budget)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(line) > budget {
			t.Fatalf("seed %d: %d bytes, budget %d", seed, len(line), budget)
		}
		if again, err := result.Frame(budget); err != nil || !bytes.Equal(line, again) {
			t.Fatalf("seed %d: the same result gave another frame: %v", seed, err)
		}

		log := append([]byte(noise(5000)(budget)+"\n"), line...)
		got, err := preflight.ParseFrame(append(log, noise(5000)(budget+1)...))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !got.Truncated {
			if d := diff(t, got, result); d != "" {
				t.Fatalf("seed %d: %s", seed, d)
			}
		}
		for code := range 6 {
			if got.Agrees(code) != result.Agrees(code) {
				t.Fatalf("seed %d: exit code %d agrees with only one of the result and its frame", seed, code)
			}
		}
	}
}

func TestFrameCutOffIsNoFrame(t *testing.T) {
	line, err := randomResult(rand.New(rand.NewPCG(1, 1))).Frame(0)
	if err != nil {
		t.Fatal(err)
	}
	// The last byte is the newline, which nobody needs.
	for n := range len(line) - 1 {
		if got, err := preflight.ParseFrame(line[:n]); !errors.Is(err, preflight.ErrNoFrame) {
			t.Fatalf("first %d bytes: got %+v, error %v, want ErrNoFrame", n, got, err)
		}
		if got, err := preflight.ParseFrame(line[n+1:]); !errors.Is(err, preflight.ErrNoFrame) {
			t.Fatalf("without %d bytes: got %+v, error %v, want ErrNoFrame", n+1, got, err)
		}
	}
}

func TestAgrees(t *testing.T) {
	type outcomes []preflight.Outcome
	cases := map[string]struct {
		reason   string
		state    string
		outcomes outcomes
		want     []int
	}{
		"Pass":         {"A pass exits 0", preflight.StateFinal, outcomes{preflight.Pass, preflight.Skipped}, []int{0}},
		"Warn":         {"A warning is no failure", preflight.StateFinal, outcomes{preflight.Pass, preflight.Warn}, []int{0}},
		"Fail":         {"A fail outweighs not knowing", preflight.StateFinal, outcomes{preflight.Unknown, preflight.Fail, preflight.Pass}, []int{3}},
		"Unknown":      {"Could not tell, or refused to run", preflight.StateFinal, outcomes{preflight.Unknown, preflight.Pass}, []int{2, 4}},
		"Running":      {"A process that did not finish has not passed", preflight.StateRunning, outcomes{preflight.Pass}, nil},
		"NothingFound": {"Nothing found is not a pass", preflight.StateFinal, nil, []int{2, 4}},
		"Strange":      {"What is no outcome is not a pass", preflight.StateFinal, outcomes{"", preflight.Pass}, []int{2, 4}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result := preflight.Result{State: tc.state}
			for _, o := range tc.outcomes {
				result.Findings = append(result.Findings, preflight.Finding{Outcome: o})
			}
			var got []int
			for code := range 256 {
				if result.Agrees(code) {
					got = append(got, code)
				}
			}
			if d := diff(t, got, tc.want); d != "" {
				t.Errorf("%s: %s", tc.reason, d)
			}
		})
	}
}

func FuzzParseFrame(f *testing.F) {
	for _, kind := range []string{"valid", "invalid"} {
		for _, path := range vectors(f, kind) {
			f.Add(read(f, path))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		result, err := preflight.ParseFrame(data)
		if err != nil {
			return
		}
		// What was understood can be said again, and means the same.
		line, err := result.Frame(2 << 20)
		if err != nil {
			t.Fatalf("a result that was parsed cannot be framed: %v", err)
		}
		again, err := preflight.ParseFrame(line)
		if err != nil {
			t.Fatal(err)
		}
		if d := diff(t, again, result); d != "" && !again.Truncated {
			t.Error(d)
		}
	})
}

// FuzzParseFrameDocument gets past the checksum, which a fuzzer cannot guess.
func FuzzParseFrameDocument(f *testing.F) {
	for _, path := range vectors(f, "valid") {
		f.Add(read(f, strings.TrimSuffix(path, ".txt")+".json"))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		result, err := preflight.ParseFrame(checksummed("json", document))
		if err != nil {
			return
		}
		for _, finding := range result.Findings {
			if finding.Source != "" || finding.Blocks || finding.Bypass != nil || finding.Job != nil || finding.BlockedTargets != nil {
				t.Errorf("a check said what only the runner may say: %+v", finding)
			}
		}
		if result.Agrees(preflight.ExitPass) && (len(result.Findings) == 0 || result.State != preflight.StateFinal) {
			t.Errorf("a pass of nothing: %+v", result)
		}
	})
}

// checksummed is a frame with any payload, written independently of the SDK.
func checksummed(encoding string, payload []byte) []byte {
	return fmt.Appendf(nil, "preflight/1 %s %d %08x %s\n", encoding, len(payload), crc32.ChecksumIEEE(payload), payload)
}
