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

// wire is the document that WIRE.md specifies. It is independent of the SDK's type,
// so that tests detect a renamed field.
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
		Actions     []preflight.Action `json:"actions"`
		URL         string             `json:"url"`
		Objects     []preflight.Object `json:"objects"`
		Evidence    map[string]string  `json:"evidence"`
	} `json:"findings"`
}

// result converts the JSON of a vector to the expected result of ParseFrame.
func (w wire) result() preflight.Result {
	r := preflight.Result{State: w.State, RunID: w.RunID, Truncated: w.Truncated}
	for _, f := range w.Findings {
		r.Findings = append(r.Findings, preflight.Finding{
			Name: f.Name, Outcome: f.Outcome, Reason: f.Reason, Message: f.Message,
			Remediation: f.Remediation, Actions: f.Actions, URL: f.URL, Objects: f.Objects, Evidence: f.Evidence,
		})
	}
	return r
}

// diff compares the JSON of two values, so that nil and empty are equal. It returns
// an empty string if they are equal.
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

func vectorFiles(tb testing.TB, kind string) []string {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "wire", kind, "*.txt"))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no vectors of kind %s: %v", kind, err)
	}
	return paths
}

func readFile(tb testing.TB, path string) []byte {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// The frozen vectors are output of the first released implementations. They never
// change, because clusters run these implementations for years.
func TestParseFrameValidVectors(t *testing.T) {
	for _, path := range append(vectorFiles(t, "valid"), vectorFiles(t, "frozen")...) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var want wire
			if err := json.Unmarshal(readFile(t, strings.TrimSuffix(path, ".txt")+".json"), &want); err != nil {
				t.Fatal(err)
			}
			got, err := preflight.ParseFrame(readFile(t, path))
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
	// A substring of the error of each kind.
	words := map[string]string{
		"NoFrame":  "no complete preflight frame",
		"Damaged":  "damaged preflight frame",
		"Version":  "preflight frame has wire version 2: only version 1 is supported",
		"Encoding": `preflight frame has unknown encoding "zstd"`,
		"Document": "preflight frame has no valid result",
		"TooLong":  "preflight frame has more than 1048576 bytes of JSON",
	}
	for _, path := range vectorFiles(t, "invalid") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			kind := strings.TrimSpace(string(readFile(t, strings.TrimSuffix(path, ".txt")+".error")))
			got, err := preflight.ParseFrame(readFile(t, path))
			if err == nil {
				t.Fatalf("ParseFrame returned %+v, want the error %s", got, kind)
			}
			if words[kind] == "" || !strings.Contains(err.Error(), words[kind]) {
				t.Errorf("error %q, want the substring %q (%s)", err, words[kind], kind)
			}
			if errors.Is(err, preflight.ErrNoFrame) != (kind == "NoFrame") {
				t.Errorf("error %q is ErrNoFrame: %t, want %s", err, errors.Is(err, preflight.ErrNoFrame), kind)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q has more than one line", err)
			}
		})
	}
}

// findings returns a pass followed by fails, n findings in total, with all fields
// that can be removed.
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

// incompressible returns a generator of text that does not compress.
func incompressible(length int) func(seed int) string {
	return func(seed int) string {
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		text := make([]byte, length)
		for i := range text {
			text[i] = byte(' ' + 1 + random.IntN(94))
		}
		return string(text)
	}
}

// compressible returns a generator of text that compresses.
func compressible(length int) func(seed int) string {
	return func(int) string { return strings.Repeat("x", length) }
}

func TestFrameTruncationOrder(t *testing.T) {
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
			reason:   "A result that fits is complete",
			findings: findings(2, compressible(20), compressible(20)),
			want:     want{have{true, true, true, true, true, true}, false},
		},
		"FitsCompressed": {
			reason:   "A result is compressed before anything is removed",
			findings: findings(2, compressible(9000), compressible(20)),
			want:     want{have{true, true, true, true, true, true}, false},
		},
		"EvidenceOfPasses": {
			reason:   "The evidence of passes is removed first",
			findings: findings(2, compressible(20), incompressible(400)),
			budget:   900,
			want:     want{have{false, true, true, true, true, true}, true},
		},
		"EvidenceAndObjects": {
			reason:   "Evidence and objects are removed before messages",
			findings: findings(2, incompressible(300), incompressible(600)),
			budget:   1100,
			want:     want{have{false, false, false, true, true, true}, true},
		},
		"EndsOfMessages": {
			reason:   "A long message is truncated before it is removed",
			findings: findings(2, incompressible(3000), compressible(20)),
			budget:   1200,
			want:     want{have{false, false, false, false, true, true}, true},
		},
		"Messages": {
			reason:   "Name, outcome and reason of each check remain",
			findings: findings(40, incompressible(300), compressible(20)),
			budget:   512,
			want:     want{have{names: true}, true},
		},
		"Names": {
			reason:   "Finally one finding replaces all",
			findings: findings(900, compressible(20), compressible(20)),
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

func TestFrameOfTooManyChecksHasCounts(t *testing.T) {
	many := findings(1000, compressible(20), compressible(20))
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

func TestFrameErrors(t *testing.T) {
	good := preflight.Finding{Name: "Good", Outcome: preflight.Pass}
	cases := map[string]struct {
		reason string
		result preflight.Result
		budget int
		want   string
	}{
		"Budget": {
			reason: "Some results do not fit into less than 512 bytes",
			result: preflight.Result{State: preflight.StateFinal, Findings: []preflight.Finding{good}},
			budget: 511,
			want:   "frame budget of 511 bytes: want at least 512",
		},
		"State": {
			reason: "A result is either running or final",
			result: preflight.Result{Findings: []preflight.Finding{good}},
			want:   `cannot frame the result: state "": want "running" or "final"`,
		},
		"NoFindings": {
			reason: "A result without findings is invalid",
			result: preflight.Result{State: preflight.StateFinal},
			want:   "cannot frame the result: final result without findings",
		},
		"Name": {
			reason: "A name must be valid as a risk name in ClusterVersion",
			result: preflight.Result{State: preflight.StateFinal, Findings: []preflight.Finding{{Name: "a b"}}},
			want:   `cannot frame the result: finding 1: name "a b": want at most 128 bytes that match ^[A-Z][A-Za-z0-9.-]*$`,
		},
		"Twice": {
			reason: "Names are unique",
			result: preflight.Result{State: preflight.StateFinal, Findings: []preflight.Finding{good, good}},
			want:   `cannot frame the result: duplicate finding "Good"`,
		},
		"Reason": {
			reason: "A reason is limited to 128 bytes",
			result: preflight.Result{State: preflight.StateFinal, Findings: []preflight.Finding{{Name: "A", Reason: strings.Repeat("x", 129)}}},
			want:   `cannot frame the result: finding "A": reason of 129 bytes: want at most 128`,
		},
		"RunID": {
			reason: "A run ID has no spaces",
			result: preflight.Result{State: preflight.StateFinal, RunID: "a b", Findings: []preflight.Finding{good}},
			want:   `cannot frame the result: run ID "a b": want at most 64 letters, digits, dots, dashes and underscores`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			line, err := tc.result.Frame(tc.budget)
			if err == nil || err.Error() != tc.want {
				t.Errorf("%s: got %q and the error %v, want the error %q", tc.reason, line, err, tc.want)
			}
		})
	}
}

// randomResult returns a random valid result.
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

func TestFrameFitsBudgetAndIsFoundInLog(t *testing.T) {
	for seed := range uint64(25) {
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
			t.Fatalf("seed %d: Frame is not deterministic: %v", seed, err)
		}

		log := append([]byte(incompressible(5000)(budget)+"\n"), line...)
		got, err := preflight.ParseFrame(append(log, incompressible(5000)(budget+1)...))
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
				t.Fatalf("seed %d: exit code %d agrees with either the result or its frame, not with both", seed, code)
			}
		}
	}
}

func TestIncompleteFrameIsIgnored(t *testing.T) {
	line, err := randomResult(rand.New(rand.NewPCG(1, 1))).Frame(0)
	if err != nil {
		t.Fatal(err)
	}
	// The last byte is the newline, which is optional.
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
		"Pass": {"A pass has the exit code 0", preflight.StateFinal, outcomes{preflight.Pass, preflight.Skipped}, []int{0}},
		"Warn": {"A warning has the exit code 0", preflight.StateFinal, outcomes{preflight.Pass, preflight.Warn}, []int{0}},
		"Fail": {
			"Fail is more severe than Unknown", preflight.StateFinal,
			outcomes{preflight.Unknown, preflight.Fail, preflight.Pass},
			[]int{3},
		},
		"Unknown": {
			"Unknown agrees with an inconclusive check and with a rejected program", preflight.StateFinal,
			outcomes{preflight.Unknown, preflight.Pass},
			[]int{2, 4},
		},
		"Running":    {"No exit code agrees with a running result", preflight.StateRunning, outcomes{preflight.Pass}, nil},
		"NoFindings": {"A result without findings is not a pass", preflight.StateFinal, nil, []int{2, 4}},
		"Undefined":  {"An undefined outcome is not a pass", preflight.StateFinal, outcomes{"", preflight.Pass}, []int{2, 4}},
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
		for _, path := range vectorFiles(f, kind) {
			f.Add(readFile(f, path))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		result, err := preflight.ParseFrame(data)
		if err != nil {
			return
		}
		// A parsed result can be framed again without a change.
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

// FuzzParseFrameDocument adds the checksum, which a fuzzer cannot guess.
func FuzzParseFrameDocument(f *testing.F) {
	for _, path := range vectorFiles(f, "valid") {
		f.Add(readFile(f, strings.TrimSuffix(path, ".txt")+".json"))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		result, err := preflight.ParseFrame(checksummed("json", document))
		if err != nil {
			return
		}
		if result.Agrees(preflight.ExitPass) && (len(result.Findings) == 0 || result.State != preflight.StateFinal) {
			t.Errorf("an incomplete result passes: %+v", result)
		}
	})
}

// checksummed returns a frame with any payload, independently of the SDK.
func checksummed(encoding string, payload []byte) []byte {
	return fmt.Appendf(nil, "preflight/1 %s %d %08x %s\n", encoding, len(payload), crc32.ChecksumIEEE(payload), payload)
}
