package runner_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/test/release"
)

func TestImages(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		mode     image.Mode
		accept   []string
		missing  bool
		want     preflight.Outcome
		contains string
		// decision is that of the whole run.
		decision verdict.Decision
	}{
		"Present":    {reason: "all images exist", want: preflight.Pass, contains: "ImagesPresent", decision: verdict.Ready},
		"With blobs": {reason: "all images and their layers exist", mode: image.Blobs, want: preflight.Pass, contains: "ImagesPresent", decision: verdict.Ready},
		"Missing":    {reason: "an image is missing", missing: true, want: preflight.Fail, contains: "ghost", decision: verdict.Blocked},
		"Accepted":   {reason: "a missing image is accepted", missing: true, accept: []string{image.Name}, want: preflight.Fail, contains: "ghost", decision: verdict.Ready},
		"Off":        {reason: "a disabled check is not a pass", mode: image.Off, want: preflight.Unknown, contains: "NotSelected", decision: verdict.Undecided},
		"Off, and accepted": {
			reason: "a disabled check is accepted", mode: image.Off, accept: []string{image.Name},
			want: preflight.Unknown, contains: "NotSelected", decision: verdict.Ready,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{})
			if tc.missing {
				w.pushWithMissingImage(t)
			}
			w.options.Selection.Images, w.options.Judgement.Accept = tc.mode, append(w.options.Judgement.Accept, accepting(tc.accept...)...)
			decided := w.run(t)
			got := find(t, decided, image.Name)
			if got.Source != finding.SourceImage || got.Outcome != tc.want || !strings.Contains(got.Reason+got.Message, tc.contains) {
				t.Errorf("%s: %+v, want %s, %q", tc.reason, got, tc.want, tc.contains)
			}
			if decided.Verdict.Decision != tc.decision {
				t.Errorf("%s: decision %s, want %s", tc.reason, decided.Verdict.Decision, tc.decision)
			}
		})
	}
}

// pushWithMissingImage makes the target a release with an image that no registry has.
func (w *world) pushWithMissingImage(t *testing.T) {
	t.Helper()
	ghost := w.registry + "/openshift/ghost@sha256:" + strings.Repeat("0", 64)
	pullSpec, err := release.Push(t.Context(), w.registry, release.Release{Version: next, Components: []release.Component{
		{Name: "ghost", Image: ghost}, {Name: "release", Image: w.pullSpec},
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.pullSpec, w.target = pullSpec, runner.Target{Image: pullSpec}
	w.signAs(t, "quay.io/openshift-release-dev/ocp-release:"+next)
}

func TestImagesReportProgress(t *testing.T) {
	w := newWorld(t, map[string]string{})
	var details []string
	w.options.Hooks.Observer = observer{status: func(status jobs.Status) {
		if status.Check == image.Name {
			details = append(details, string(status.State)+" "+status.Detail)
		}
	}}
	w.run(t)
	want := []string{string(diagnosis.Running) + " ", string(diagnosis.Running) + " 1 of 1 image", string(diagnosis.Done) + " "}
	if !slices.Equal(details, want) {
		t.Errorf("progress %q, want %q", details, want)
	}
}

func TestInvalidImageModes(t *testing.T) {
	for mode, want := range map[image.Mode]string{"guess": `"check-blobs"`, image.Pull: "without Jobs"} {
		w := newWorld(t, map[string]string{})
		w.options.Selection.Images = mode
		_, err := runner.Run(t.Context(), w.cluster, w.target, w.options)
		if bad := (*input.Error)(nil); !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want bad input with %s", mode, err, want)
		}
	}
}
