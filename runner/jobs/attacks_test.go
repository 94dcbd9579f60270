package jobs_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
)

// The Job is compared when it is created, but admission can change its pods later.
func TestAttacksOnPods(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*corev1.PodSpec)
		want   string
		words  string // part of the message
	}{
		"Unchanged": {reason: "the pod is that of the Job", change: func(*corev1.PodSpec) {}, want: "Etcd.Quorum Pass(Because)"},
		"Command": {
			reason: "another program reports the result", change: func(spec *corev1.PodSpec) { spec.Containers[0].Command = []string{"/bin/true"} },
			want: wholeJob + "Unknown(AlteredByAdmission)", words: `spec.containers["check"].command[0] is "/bin/true"`,
		},
		"Arguments": {
			reason: "the arguments change the program", change: func(spec *corev1.PodSpec) { spec.Containers[0].Args = []string{"--version"} },
			want: wholeJob + "Unknown(AlteredByAdmission)", words: "args",
		},
		"Image": {
			reason: "another image reports the result", change: func(spec *corev1.PodSpec) { spec.Containers[0].Image = "quay.io/other" },
			want: wholeJob + "Unknown(AlteredByAdmission)", words: `image is "quay.io/other"`,
		},
		"Environment": {
			reason: "a preloaded library is another program",
			change: func(spec *corev1.PodSpec) {
				spec.Containers[0].Env = append(spec.Containers[0].Env, corev1.EnvVar{Name: "LD_PRELOAD", Value: "/injected.so"})
			},
			want: wholeJob + "Unknown(AlteredByAdmission)", words: "env",
		},
		"Message": {
			reason: "the result is read from another file",
			change: func(spec *corev1.PodSpec) { spec.Containers[0].TerminationMessagePath = "/injected/result" },
			want:   wholeJob + "Unknown(AlteredByAdmission)", words: "terminationMessagePath",
		},
		"Account": {
			reason: "the check reads as another account", change: func(spec *corev1.PodSpec) { spec.ServiceAccountName = "other" },
			want: wholeJob + "Unknown(AlteredByAdmission)", words: `serviceAccountName is "other"`,
		},
		"Renamed": {
			reason: "another container has the name of the check", change: func(spec *corev1.PodSpec) { spec.Containers[0].Name = "other" },
			want: wholeJob + "Unknown(AlteredByAdmission)", words: `containers["check"] is not set`,
		},
		"DefaultAccount": {
			reason: "the API server sets the default account", change: func(spec *corev1.PodSpec) { spec.ServiceAccountName = "default" },
			want: "Etcd.Quorum Pass(Because)",
		},
		"Sidecar": {
			reason: "another container does not change the check",
			change: func(spec *corev1.PodSpec) {
				spec.Containers = append(spec.Containers, corev1.Container{Name: "proxy", Image: "quay.io/proxy"})
			},
			want: "Etcd.Quorum Pass(Because)",
		},
		"InitContainer": {
			reason: "another init container does not change the check",
			change: func(spec *corev1.PodSpec) {
				spec.InitContainers = []corev1.Container{{Name: "init", Image: "quay.io/init"}}
			},
			want: "Etcd.Quorum Pass(Because)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			altered := func(p *diagnosis.Pod) {
				spec := aCheck().Job.Spec.Template.Spec.DeepCopy()
				tc.change(spec)
				p.Spec = *spec
			}
			got := diagnosis.Classify(observe(framed, pod(altered, ended(0, frame(t, preflight.StateFinal, reported("Quorum", preflight.Pass))))))
			if diff := cmp.Diff([]string{tc.want}, outcomes(got.Findings)); diff != "" {
				t.Fatalf("%s (-want, +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(got.Findings[0].Message, tc.words) {
				t.Errorf("%s: %q is not in %q", tc.reason, tc.words, got.Findings[0].Message)
			}
		})
	}
}
