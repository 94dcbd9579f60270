package terminal_test

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	screen "github.com/openshift/update-preflight/test/terminal"
)

func failed(name string) finding.Finding {
	return finding.Finding{
		Finding: preflight.Finding{Name: name, Outcome: preflight.Fail, Reason: "NoQuorum", Message: "1 of 3"},
		Blocks:  true,
	}
}

// output is written by a ticker, too.
type output struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(data []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.Write(data)
}

func (o *output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.String()
}

// A log has a line for each step and result, and for a state that lasts, once; none has control characters.
func TestPlainProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		written := &output{}
		display := terminal.New(written, terminal.About{Decides: true})
		follower := terminal.ProgressOnly(display)
		follower.Started("3b6f2c1e")
		follower.Step("reading the \x1b[31mrelease\n")
		follower.Status(jobs.Status{Check: "Etcd.Short", State: diagnosis.Running, Since: time.Now()})
		follower.Status(jobs.Status{Check: "Etcd.Long", State: diagnosis.Waiting, Detail: "unschedulable", Since: time.Now()})
		time.Sleep(time.Second)
		follower.Status(jobs.Status{Check: "Etcd.Short", State: diagnosis.Done})
		time.Sleep(time.Minute)
		follower.Reported([]finding.Finding{failed("Etcd.Quorum")})
		follower.Decided(report.Report{})
		display.Close()
		lines := strings.Split(strings.TrimSuffix(written.String(), "\n"), "\n")
		want := []string{
			"   0.0s  reading the release", "   2.0s  Etcd.Long: " + string(diagnosis.Waiting) + ": unschedulable",
			"  61.0s  Etcd.Quorum: Fail (NoQuorum)",
		}
		if !slices.Equal(lines, want) {
			t.Errorf("got\n%q, want\n%q", lines, want)
		}
	})
}

// --quiet shows nothing.
func TestSilent(_ *testing.T) {
	display := terminal.Silent()
	follower := terminal.ProgressOnly(display)
	follower.Started("3b6f2c1e")
	follower.Step("reading")
	follower.Status(jobs.Status{})
	follower.Reported([]finding.Finding{failed("Etcd.Quorum")})
	follower.Decided(report.Report{})
	display.Close()
}

// The last lines of a terminal show what can be done; at the end, findings that no report follows for stay.
func TestLiveProgress(t *testing.T) {
	t.Setenv("TERM", "xterm")
	opened := screen.Open(t, 80, 24)
	display := terminal.New(opened.Stream, terminal.About{Decides: true, Interrupt: "clean up", Program: "oc preflight"})
	follower := terminal.ProgressOnly(display)
	follower.Step("running 1 check")
	follower.Started("3b6f2c1e-8a52-4a5e-9a57-0c1f7d2c9e11")
	follower.Reported([]finding.Finding{failed("Etcd.Quorum")})
	display.Close()
	received := opened.Received()
	for _, part := range []string{"Ctrl-C: clean up", "follow: oc preflight logs 3b6f2c1e CHECK -f", "running 1 check"} {
		if !strings.Contains(received, part) {
			t.Errorf("the terminal has not shown %q", part)
		}
	}
	shown := screen.NewScreen(80, 24)
	if _, err := shown.Write([]byte(received)); err != nil {
		t.Fatal(err)
	}
	if left := strings.TrimSpace(shown.Shown()); left != "Etcd.Quorum: Fail (NoQuorum)" {
		t.Errorf("at the end the screen shows %q, want the finding", left)
	}
}

// The style follows the flag, the terminal and the environment, as https://no-color.org requires.
func TestStyle(t *testing.T) {
	opened := screen.Open(t, 100, 30)
	for name, tc := range map[string]struct {
		reason string
		w      io.Writer
		color  string
		// variables are those of the environment.
		variables map[string]string
		want      format.Style
	}{
		"File":   {reason: "a file is no terminal", w: io.Discard, color: terminal.ColorAuto},
		"Always": {reason: "the flag asks for it", w: io.Discard, color: terminal.ColorAlways, want: format.Style{Color: true}},
		"Terminal": {
			reason: "a terminal of this locale", w: opened.Stream, color: terminal.ColorAuto,
			variables: map[string]string{"LC_ALL": "C.UTF-8"}, want: format.Style{Color: true, Symbols: true, Width: 100},
		},
		"Locale": {
			reason: "a character is a byte", w: opened.Stream, color: terminal.ColorAuto, variables: map[string]string{"LC_ALL": "C"},
			want: format.Style{Color: true, Width: 100},
		},
		"FirstLocale": {
			reason: "LC_ALL is before LANG", w: opened.Stream, color: terminal.ColorNever,
			variables: map[string]string{"LC_ALL": "C", "LANG": "C.UTF-8"}, want: format.Style{Width: 100},
		},
		"NoColor": {
			reason: "the user wants none", w: opened.Stream, color: terminal.ColorAuto,
			variables: map[string]string{"NO_COLOR": "1", "LC_ALL": "C"}, want: format.Style{Width: 100},
		},
		"Forced": {
			reason: "a flag is before the environment", w: opened.Stream, color: terminal.ColorAlways,
			variables: map[string]string{"NO_COLOR": "1", "LC_ALL": "C"}, want: format.Style{Color: true, Width: 100},
		},
		"Dumb": {
			reason: "a terminal without control sequences", w: opened.Stream, color: terminal.ColorAuto,
			variables: map[string]string{"TERM": "dumb", "LC_ALL": "C.UTF-8"}, want: format.Style{Width: 100},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG"} {
				t.Setenv(variable, tc.variables[variable])
			}
			t.Setenv("TERM", cmp.Or(tc.variables["TERM"], "xterm"))
			if got := terminal.StyleOf(tc.w, tc.color); got != tc.want {
				t.Errorf("%s: %+v, want %+v", tc.reason, got, tc.want)
			}
		})
	}
}

// The first interrupt ends the run, and only the next one the program.
func TestInterrupts(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	first, second := make(chan struct{}), make(chan struct{})
	stop := terminal.OnInterrupts(ctx, func() { close(first) }, func() { close(second) })
	interrupt()
	<-first
	select {
	case <-second:
		t.Error("one interrupt is counted twice")
	default:
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-second
	stop()
	terminal.OnInterrupts(t.Context(), func() { t.Error("no interrupt came") }, func() {})()
}
