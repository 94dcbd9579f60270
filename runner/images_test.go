package runner_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/selection"
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
		"Present": {reason: "all images exist", want: preflight.Pass, contains: "ImagesPresent", decision: verdict.Ready},
		"With blobs": {
			reason: "all images and their layers exist", mode: image.Blobs, want: preflight.Pass, contains: "ImagesPresent",
			decision: verdict.Ready,
		},
		"Missing": {reason: "an image is missing", missing: true, want: preflight.Fail, contains: "ghost", decision: verdict.Blocked},
		"Accepted": {
			reason: "a missing image is accepted", missing: true, accept: []string{image.Name}, want: preflight.Fail,
			contains: "ghost", decision: verdict.Ready,
		},
		"Off": {
			reason: "a disabled check is not a pass", mode: image.Off, want: preflight.Unknown, contains: "NotSelected",
			decision: verdict.Undecided,
		},
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

// hyperShift has a HostedCluster beside the objects of an API server.
type hyperShift struct{ next http.RoundTripper }

func (h hyperShift) RoundTrip(request *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(request.URL.Path, "/hostedclusters/example") {
		return h.next.RoundTrip(request)
	}
	body := `{"apiVersion":"hypershift.openshift.io/v1beta1","kind":"HostedCluster","metadata":{"namespace":"clusters","name":"example"},"status":{"version":{"desired":{"version":"` + current + `"}}}}`
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: request,
	}, nil
}

// The nodes of a guest that cannot be reached pull nothing, so it is unknown whether they can.
func TestImagesOfAnUnreachableGuest(t *testing.T) {
	w := newWorld(t, map[string]string{})
	above := rest.CopyConfig(config)
	above.Wrap(func(next http.RoundTripper) http.RoundTripper { return hyperShift{next} })
	selected := hosted.Selection{
		Namespace: "clusters", Name: "example",
		Guest: func() (*cluster.Cluster, error) { return nil, errors.New("no route to host") },
	}
	guest, estate, err := hosted.Reach(t.Context(), connect(t, above), selected,
		func(config *rest.Config) (*cluster.Cluster, error) { return cluster.Connect(config, "test") })
	if err != nil {
		t.Fatal(err)
	}
	w.options.Estate, w.options.Selection = estate, selection.Selection{Images: image.Pull}
	decided, err := runner.Run(t.Context(), guest, runner.Target{Image: w.pullSpec}, w.options)
	if err != nil {
		t.Fatal(err)
	}
	if got := find(t, decided, image.Name); got.Outcome != preflight.Unknown || decided.Run.ID != "" ||
		decided.Verdict.Decision == verdict.Ready {
		t.Errorf("run %q is %s, images %+v, want an inconclusive finding and no record", decided.Run.ID, decided.Verdict.Decision, got)
	}
}

func TestInvalidImageModes(t *testing.T) {
	for mode, want := range map[image.Mode]string{"guess": `"check-blobs"`, image.Pull: "does not use Jobs"} {
		w := newWorld(t, map[string]string{})
		w.options.Selection.Images = mode
		_, err := runner.Run(t.Context(), w.cluster, w.target, w.options)
		if bad := (*input.Error)(nil); !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want bad input with %s", mode, err, want)
		}
	}
}
