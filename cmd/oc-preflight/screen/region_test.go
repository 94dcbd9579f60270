package screen_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/clipperhouse/displaywidth"
	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/cmd/oc-preflight/screen"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/test/golden"
	"github.com/openshift/update-preflight/test/terminal"
)

// start is when the run of the frames started; they are drawn 12 seconds later.
var start = time.Date(2026, 11, 22, 14, 0, 0, 0, time.UTC)

// begun returns a run in progress.
func begun() *screen.Progress {
	return &screen.Progress{
		Target: "5.1.0", Start: start, Limit: 10 * time.Minute, Findings: true,
		Hints: []string{"Ctrl-C: detach or clean up", "follow: oc preflight logs 6f45a1c2 CHECK -f"},
	}
}

// status is a state that a check has had for some seconds.
func status(check string, state diagnosis.State, detail string, seconds int) jobs.Status {
	return jobs.Status{Check: check, State: state, Detail: detail, Since: start.Add(time.Duration(12-seconds) * time.Second)}
}

func found(name string, outcome preflight.Outcome, message string) finding.Finding {
	return finding.Finding{
		Finding: preflight.Finding{Name: name, Outcome: outcome, Reason: "Observed", Message: message},
		Blocks:  outcome != preflight.Pass,
	}
}

// waiting is a run whose checks have reported, but for two, with one that failed.
func waiting() *screen.Progress {
	p := begun()
	p.Step("running 36 checks")
	for i := range 34 {
		name := fmt.Sprintf("Operator%02d.Check", i)
		p.Status(status(name, diagnosis.Queued, "", 12))
		p.Status(status(name, diagnosis.Done, "", 5))
		p.Reported([]finding.Finding{found(name, preflight.Pass, "")})
	}
	p.Status(status("IngressPreflight", diagnosis.Waiting, "unschedulable: 1 node, 1 cordoned", 9))
	p.Status(status("MachineConfigPreflight", diagnosis.Waiting, "", 10))
	p.Status(status("MachineConfigPreflight", diagnosis.Running, "on node worker-2", 9))
	p.Reported([]finding.Finding{
		found("Duration", preflight.Warn, "the update takes longer than the maintenance window"),
		found("NodesCordoned", preflight.Fail, "preflight-0 is cordoned"),
	})
	return p
}

// crowded has more checks and findings than rows.
func crowded() *screen.Progress {
	p := begun()
	p.Step("running 60 checks")
	for i := range 60 {
		name := fmt.Sprintf("Operator%02d.Check", i)
		p.Status(status(name, diagnosis.Queued, "", 12))
		if i%2 == 0 {
			p.Status(status(name, diagnosis.Running, "", i%11))
		}
		if i == 33 {
			p.Status(status(name, diagnosis.Queued, "the node had too little memory", 2))
		}
		if i%20 == 19 {
			p.Status(status(name, diagnosis.Waiting, "pulling the image", i%13))
		}
		p.Reported([]finding.Finding{found(fmt.Sprintf("Gate%02d", i), preflight.Unknown, "the API server did not respond")})
	}
	return p
}

// foreign has names and texts in characters of two columns, and long ones.
func foreign() *screen.Progress {
	p := begun()
	p.Step("running 2 checks")
	p.Status(status("検査.証明書", diagnosis.Waiting, "イメージを取得しています: "+strings.Repeat("長", 60), 3))
	p.Status(status(strings.Repeat("Long", 30), diagnosis.Running, "on node worker-1", 4))
	p.Reported([]finding.Finding{found("Hostile", preflight.Fail, "\x1b[2J\x1b[31mline 1\nline 2\u202e")})
	return p
}

// unknown has only a step, as a command that runs no checks.
func unknown() *screen.Progress {
	p := &screen.Progress{Start: start}
	p.Step("judging 304 targets")
	p.Status(status("Images", diagnosis.Running, "120 of 190 images checked", 2))
	return p
}

func TestFrame(t *testing.T) {
	symbols := format.Style{Symbols: true}
	tests := map[string]struct {
		reason   string
		progress *screen.Progress
		height   int
		style    format.Style
	}{
		"waiting":      {"the bar, the finding, the checks and the hint", waiting(), 23, symbols},
		"waiting-text": {"a locale without UTF-8 has words instead of symbols", waiting(), 23, format.Style{}},
		"crowded":      {"the checks that wait longest, and the number of the others", crowded(), 23, symbols},
		"low":          {"a terminal of few rows keeps the bar and the hint", crowded(), 6, symbols},
		"foreign":      {"wide characters are measured in columns, control characters are not shown", foreign(), 23, symbols},
		"unknown":      {"without checks there is no bar", unknown(), 23, symbols},
	}
	for name, test := range tests {
		for _, width := range []int{40, 79} {
			t.Run(fmt.Sprintf("%s-%d", name, width), func(t *testing.T) {
				style := test.style
				style.Width = width
				lines := test.progress.Frame(start.Add(12*time.Second), test.height, style)
				if len(lines) > test.height {
					t.Errorf("%s: %d lines, want at most %d", test.reason, len(lines), test.height)
				}
				for _, line := range lines {
					if got := columns(line); got > width {
						t.Errorf("%s: %d columns, want at most %d: %s", test.reason, got, width, line)
					}
				}
				golden.Compare(t, "testdata/"+filepath.Base(t.Name())+".text", strings.Join(lines, "\n")+"\n")
			})
		}
	}
}

// A frame has no column or row more than the terminal, whatever its size, and colors do
// not count as columns.
func TestFrameFitsEverySize(t *testing.T) {
	for _, p := range []*screen.Progress{waiting(), crowded(), foreign(), unknown()} {
		for width := 1; width < 200; width += 3 {
			for height := range 30 {
				style := format.Style{Symbols: width%2 == 0, Color: true, Width: width}
				lines := p.Frame(start.Add(time.Hour), height, style)
				if len(lines) > height {
					t.Fatalf("%d lines in %d by %d", len(lines), width, height)
				}
				for _, line := range lines {
					if columns(line) > width {
						t.Fatalf("%d columns in %d by %d: %q", columns(line), width, height, line)
					}
				}
			}
		}
	}
}

// A terminal without symbols gets ASCII, also where a line is cut.
func TestFrameIsASCIIWithoutSymbols(t *testing.T) {
	for _, p := range []*screen.Progress{waiting(), crowded(), unknown()} {
		for width := 1; width < 100; width++ {
			for _, line := range p.Frame(start.Add(time.Hour), 20, format.Style{Width: width}) {
				if at := strings.IndexFunc(line, func(r rune) bool { return r > unicode.MaxASCII }); at >= 0 {
					t.Fatalf("%d columns: %q", width, line)
				}
			}
		}
	}
}

func TestReset(t *testing.T) {
	p := waiting()
	p.Reset()
	if got := p.Frame(start, 23, format.Style{Width: 79}); len(got) > 0 || len(p.Notable()) > 0 {
		t.Errorf("after Reset the frame is %q, and %d findings are left; want none", got, len(p.Notable()))
	}
	p.Step("deleting the objects")
	want := []string{"  deleting the objects"}
	if diff := cmp.Diff(want, p.Frame(start.Add(time.Second), 23, format.Style{Width: 79})); diff != "" {
		t.Errorf("the frame of the next step, which must not scroll the report away (-want +got):\n%s", diff)
	}
	p.Status(jobs.Status{Check: "Etcd.Quorum", State: diagnosis.Queued})
	if got := p.Frame(start.Add(time.Second), 23, format.Style{Width: 79}); len(got) < 3 {
		t.Errorf("the frame of the next update is %q; want the bar, the step and the hints again", got)
	}
}

// columns is the number of columns that a line takes on a terminal.
func columns(line string) int {
	return displaywidth.Options{ControlSequences: true}.String(line)
}

// shown draws frames of text on a screen of 80 by 6 characters, after a line of the shell.
func shown(t *testing.T, frames ...string) *terminal.Screen {
	t.Helper()
	const columns, rows = 80, 6
	drawn := terminal.NewScreen(columns, rows)
	fmt.Fprintln(drawn, "$ preflight")
	region := screen.NewRegion(drawn)
	for _, frame := range frames {
		scroll, lines, found := strings.Cut(frame, "|")
		if !found {
			scroll, lines = "", frame
		}
		if err := region.Draw(slices.Collect(strings.SplitSeq(lines, "/")), scroll, columns); err != nil {
			t.Fatal(err)
		}
	}
	return drawn
}

func TestRegion(t *testing.T) {
	tests := map[string]struct {
		reason     string
		frames     []string
		want       string
		scrollback []string
	}{
		"Same":   {reason: "lines are overwritten", frames: []string{"first/second line", "1/2"}, want: "$ preflight\n1\n2"},
		"Fewer":  {reason: "what is left of a longer frame is erased", frames: []string{"a/b/c", "x"}, want: "$ preflight\nx"},
		"More":   {reason: "a longer frame begins in the same row", frames: []string{"a", "x/y/z"}, want: "$ preflight\nx\ny\nz"},
		"Scroll": {reason: "other text is above the lines", frames: []string{"a/b", "above\n|x"}, want: "$ preflight\nabove\nx"},
		"Longer": {
			reason: "text of two rows erases both", frames: []string{"aaaa/bbbb/cccc", strings.Repeat("t", 81) + "\n|x"},
			want: "$ preflight\n" + strings.Repeat("t", 80) + "\nt\nx",
		},
		"Whole": {
			reason: "frames as high as the screen leave nothing but the line of the shell in the scrollback",
			frames: []string{"1/2/3/4/5", "1/2/3/4/5", "a/b/c/d/e", "x"}, want: "x", scrollback: []string{"$ preflight"},
		},
		"Colored": {
			reason: "colors take no columns", frames: []string{"\x1b[31m" + strings.Repeat("r", 79) + "\x1b[0m", "x"},
			want: "$ preflight\nx",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			drawn := shown(t, test.frames...)
			if diff := cmp.Diff(test.want, drawn.Shown()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			if diff := cmp.Diff(test.scrollback, drawn.Scrollback); diff != "" {
				t.Errorf("%s: the scrollback (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

// A terminal that became narrower shows a line in more rows, which are erased.
func TestRegionOfANarrowerTerminal(t *testing.T) {
	const wide, narrow = 80, 40
	for name, tc := range map[string]struct {
		reason, line string
		rows         int
	}{
		"Lines":     {reason: "79 columns take two rows of 40", line: strings.Repeat("x", 79), rows: 2},
		"WideRunes": {reason: "a character of two columns counts twice", line: strings.Repeat("長", 39), rows: 2},
		"Colors":    {reason: "a color takes no column", line: "\x1b[31m" + strings.Repeat("x", 40) + "\x1b[0m", rows: 1},
	} {
		var written bytes.Buffer
		region := screen.NewRegion(&written)
		if err := region.Draw([]string{tc.line}, "", wide); err != nil {
			t.Fatal(err)
		}
		written.Reset()
		if err := region.Draw([]string{"new"}, "", narrow); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("\r\x1b[%dA", tc.rows); !strings.Contains(written.String(), want) {
			t.Errorf("%s: %s: %q, want %q", name, tc.reason, written.String(), want)
		}
	}
}
