package payload_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/payload/imagefiles"
)

const sourceJob = `{apiVersion: batch/v1, kind: Job, metadata: {name: NAME, namespace: zoo, annotations: {openshift.io/preflight-check: "true"}}}
`

func TestReadManifests(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		files    map[string][]byte
		jobs     []string
		problems []string
	}{
		"Several": {
			reason: "files are read in the order of their names, and other files are ignored",
			files: map[string][]byte{
				"0000_50_b_job.yaml": []byte(strings.ReplaceAll(sourceJob, "NAME", "second")),
				"0000_50_a_job.yaml": []byte(strings.ReplaceAll(sourceJob, "NAME", "first")),
				"image-references":   []byte("{}"), "README.md": []byte("---"),
			},
			jobs: []string{"a/first", "b/second"},
		},
		"Broken": {
			reason:   "problems are reported as for a release",
			files:    map[string][]byte{"job.yaml": []byte(strings.ReplaceAll(sourceJob, "}}}", `}}, specs: {}}`))},
			problems: []string{"InvalidPreflight"},
		},
		"Twice": {
			reason:   "one of the two is wrong",
			files:    map[string][]byte{"job.yaml": []byte(sourceJobs("twice", "twice"))},
			jobs:     []string{"job/twice"},
			problems: []string{"DuplicateManifest"},
		},
		"None": {reason: "no files"},
	} {
		t.Run(name, func(t *testing.T) {
			release, err := payload.ReadManifests(tc.files)
			if err != nil {
				t.Fatal(err)
			}
			var jobs, problems []string
			for _, job := range release.Jobs {
				jobs = append(jobs, job.Component+"/"+job.Job.Name)
			}
			for _, problem := range release.Problems {
				problems = append(problems, problem.Reason)
				if len(problem.BlockedTargets) > 0 {
					t.Errorf("%s: manifests without a release block the targets %v", tc.reason, problem.BlockedTargets)
				}
			}
			if diff := cmp.Diff(tc.jobs, jobs); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.problems, problems); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func sourceJobs(names ...string) string {
	var documents []string
	for _, name := range names {
		documents = append(documents, strings.ReplaceAll(sourceJob, "NAME", name))
	}
	return strings.Join(documents, "---\n")
}

func TestReadManifestsBounds(t *testing.T) {
	big := strings.ReplaceAll(sourceJob, "}}}", `}}, spec: {template: {metadata: {name: "`+strings.Repeat("x", 2<<20)+`"}}}}`)
	files := map[string][]byte{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		files[name+".yaml"] = []byte(strings.ReplaceAll(big, "NAME", name))
	}
	_, err := payload.ReadManifests(files)
	var failure *imagefiles.Error
	if !errors.As(err, &failure) || failure.Reason.String() != "TooManyPreflights" {
		t.Errorf("10 MiB of Jobs are accepted: %v", err)
	}
}
