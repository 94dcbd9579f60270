package main

import (
	"io"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection"

	"github.com/openshift/update-preflight/runner/record/baselinestore"
)

// A candidate sees the last renewal, waits for the duration of the Lease, and tries again: together less than
// 45 seconds.
func TestTimesOfLeaderElection(t *testing.T) {
	f, err := parse(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	attempt := time.Duration((1 + leaderelection.JitterFactor) * float64(f.retry))
	if sum := attempt + f.lease + attempt; sum >= 45*time.Second {
		t.Errorf("a candidate waits up to %s, want less than 45s", sum)
	}
	if f.renew >= f.lease || attempt >= f.renew {
		t.Errorf("lease %s, renew %s, attempts up to %s apart: each must be shorter than the one before", f.lease, f.renew, attempt)
	}
}

func TestBaselineIsOnByDefault(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want baselinestore.Names
	}{
		"Default": {want: baselinestore.Plain},
		"Off":     {args: []string{"--no-baseline"}, want: baselinestore.None},
		"Digests": {args: []string{"--redact-baseline"}, want: baselinestore.Digests},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := parse(tc.args, io.Discard)
			if got := f.baseline(); err != nil || got != tc.want {
				t.Errorf("names %q, error %v; want %q", got, err, tc.want)
			}
		})
	}
	if _, err := parse([]string{"--no-baseline", "--redact-baseline"}, io.Discard); err == nil {
		t.Error("both flags are accepted")
	}
}
