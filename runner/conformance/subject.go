package conformance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/junit"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/conformance/requirement"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/payload/imagefiles"
	"github.com/openshift/update-preflight/runner/registry"
)

// Subject is the set of checks to test.
type Subject struct {
	release *payload.Release
	// alone is true for an image without a manifest.
	alone  bool
	access *registry.Access
	images map[string]image
}

// image is a resolved image of a manifest.
type image struct {
	// pullSpec is by digest; empty when err is set.
	pullSpec string
	err      error
}

// Substitution replaces an image that a manifest names.
type Substitution struct {
	// Source is the name in manifests, without tag and digest. Empty means every image.
	Source string
	// PullSpec is the image to run.
	PullSpec string
}

// ParseSubstitution parses "SOURCE=PULLSPEC" or "PULLSPEC".
func ParseSubstitution(text string) (Substitution, error) {
	source, pullSpec, found := strings.Cut(text, "=")
	if !found {
		source, pullSpec = "", text
	}
	if pullSpec == "" || found && (source == "" || repository(source) != source) {
		return Substitution{}, fmt.Errorf("%q is neither PULLSPEC nor SOURCE=PULLSPEC, where SOURCE is a repository without tag and digest", text)
	}
	return Substitution{Source: source, PullSpec: pullSpec}, nil
}

// Manifests is the subject of manifests as stored in an operator's
// repository, by file name. Their images have tags, which
// the release build replaces by digests; here substitutions do, or without one
// the current digest of the tag, resolved by access.
func Manifests(ctx context.Context, files map[string][]byte, substitutions []Substitution, access *registry.Access) (Subject, error) {
	release, err := payload.ReadManifests(files)
	if err != nil {
		return Subject{}, err
	}
	if len(release.Jobs) == 0 && len(release.Problems) == 0 {
		return Subject{}, fmt.Errorf("no manifest has a Job with the annotation %s: \"true\"", payload.Annotation)
	}
	for i := range release.Jobs {
		release.Jobs[i].Component = componentIn(release.Jobs[i])
	}
	s := Subject{release: release, images: map[string]image{}, access: access}
	s.resolve(ctx, substitutions)
	return s, nil
}

var inRelease = regexp.MustCompile(`^0000_[0-9]+_`)

// componentIn is the component that a preflight names the check after: a release has the
// manifests of an operator as 0000_50_IMAGE_FILE, unless they have such a name already ("oc adm
// release new"), where IMAGE is usually the last part of the operator's repository, without "origin-".
func componentIn(manifest payload.Job) string {
	images := imagesOf(manifest.Job)
	if inRelease.MatchString(manifest.File) || len(images) == 0 {
		return manifest.Component
	}
	return cmp.Or(strings.TrimPrefix(path.Base(repository(*images[0])), "origin-"), manifest.Component)
}

// Program is the subject of a single image: its /bin/preflight is run by a Job
// that declares a framed result, without any rights, in its own namespace.
func Program(ctx context.Context, pullSpec string, access *registry.Access) Subject {
	const name, namespace = "preflight", "preflight-conformance"
	job := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Annotations: map[string]string{
			payload.Annotation: "true", "preflight.openshift.io/result": "framed",
		}},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: name, Image: pullSpec, Command: []string{"/bin/preflight"},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("50Mi"),
				}},
			}},
		}}},
	}
	s := Subject{
		release: &payload.Release{Jobs: []payload.Job{{File: "preflight.yaml", Component: "image", Job: job}}},
		images:  map[string]image{}, access: access, alone: true,
	}
	s.resolve(ctx, nil)
	return s
}

// resolve replaces tags by digests, and lists the images as a release
// would. An image that cannot be resolved remains, and its manifest is rejected.
func (s *Subject) resolve(ctx context.Context, substitutions []Substitution) {
	s.release.Images = map[string]string{}
	for _, manifest := range s.release.Jobs {
		for _, name := range imagesOf(manifest.Job) {
			found, known := s.images[*name]
			if !known {
				found.pullSpec, found.err = s.digest(ctx, substitute(*name, substitutions))
				s.images[*name] = found
			}
			if found.err == nil {
				s.release.Images[*name] = found.pullSpec
			}
		}
	}
	for _, manifest := range s.release.Jobs {
		for _, name := range imagesOf(manifest.Job) {
			*name = cmp.Or(s.images[*name].pullSpec, *name)
		}
	}
}

func (s *Subject) digest(ctx context.Context, pullSpec string) (string, error) {
	if strings.Contains(pullSpec, "@") {
		return pullSpec, nil
	}
	return imagefiles.Resolve(ctx, pullSpec, s.access)
}

func substitute(name string, substitutions []Substitution) string {
	for _, each := range substitutions {
		if each.Source == "" || each.Source == repository(name) {
			return each.PullSpec
		}
	}
	return name
}

// repository is a pull spec without tag and digest.
func repository(pullSpec string) string {
	name, _, _ := strings.Cut(pullSpec, "@")
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		name = name[:colon]
	}
	return name
}

func imagesOf(job *batchv1.Job) []*string {
	spec := &job.Spec.Template.Spec
	var names []*string
	for i := range spec.InitContainers {
		names = append(names, &spec.InitContainers[i].Image)
	}
	for i := range spec.Containers {
		names = append(names, &spec.Containers[i].Image)
	}
	for i := range spec.Volumes {
		if source := spec.Volumes[i].Image; source != nil {
			names = append(names, &source.Reference)
		}
	}
	return names
}

func (s Subject) unreadable() []requirement.Result {
	var results []requirement.Result
	for _, problem := range s.release.Problems {
		results = append(results, requirement.Result{
			Check: problem.Evidence["file"], Requirement: requirement.Manifest, Outcome: problem.Outcome,
			Reason: problem.Reason, Message: problem.Message, Remediation: problem.Remediation,
		})
	}
	return results
}

// rejected are the results about Jobs that a preflight would not run.
func (s Subject) rejected(findings []finding.Finding) []requirement.Result {
	var results []requirement.Result
	for _, f := range findings {
		result := requirement.Result{
			Check: f.Name, Requirement: requirement.Manifest, Outcome: preflight.Fail, Reason: f.Reason, Message: f.Message,
			Remediation: "Correct the manifest: no preflight runs it unchanged.",
		}
		if f.Reason == "RefusedImage" {
			result.Requirement = requirement.Image
			result.Message += s.unresolved()
			result.Remediation = "Push the image, or name another image to run instead."
		}
		results = append(results, result)
	}
	return results
}

// unresolved lists why images have no digest.
func (s Subject) unresolved() string {
	var causes []string
	for _, found := range s.images {
		if found.err != nil {
			causes = append(causes, found.err.Error())
		}
	}
	slices.Sort(causes)
	return strings.Join(append([]string{""}, causes...), "; ")
}

func (s Subject) describeImages(check jobplan.Check) string {
	var lines []string
	for name, found := range s.images {
		for _, used := range imagesOf(check.Job) {
			if *used != found.pullSpec {
				continue
			}
			text := found.pullSpec
			if name != found.pullSpec {
				text = name + " is " + found.pullSpec
			}
			lines = append(lines, text)
		}
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "; ")
}

// invalid are the results about Jobs that the API server rejects. The checks come from the manifests.
func invalid(findings []finding.Finding, checks []jobplan.Check) []requirement.Result {
	declared := map[string]*batchv1.Job{}
	for _, check := range checks {
		declared[check.Name] = check.Job
	}
	var results []requirement.Result
	for _, f := range findings {
		outcome, remedy := preflight.Unknown, f.Remediation
		missing := f.Reason == launch.ReasonServiceAccountMissing.String() // a cluster has only what a manifest brings
		if missing {
			remedy = requirement.MissingAccount + snippet(declared[f.Name])
		}
		if missing || f.Reason == "InvalidManifest" {
			outcome = preflight.Fail
		}
		results = append(results, requirement.Result{
			Check: f.Name, Requirement: requirement.Manifest, Outcome: outcome,
			Reason: f.Reason, Message: f.Message, Remediation: remedy,
		})
	}
	return results
}

// snippet is the ServiceAccount of a Job as YAML on one line, to be copied from any format.
func snippet(job *batchv1.Job) string {
	if job == nil || job.Spec.Template.Spec.ServiceAccountName == "" {
		return ""
	}
	return fmt.Sprintf(` In YAML: {apiVersion: v1, kind: ServiceAccount, metadata: {name: %s, namespace: %s, annotations: {%s: "true"}}}`,
		job.Spec.Template.Spec.ServiceAccountName, job.Namespace, payload.Annotation)
}

// Kind is the kind of the document.
const Kind = "PreflightConformance"

// Report is the results for all checks of a manifest, each check's results in the same order.
type Report struct {
	Results []requirement.Result `json:"results"`
}

// Outcome is Fail when a check violates a requirement, else Unknown when one
// could not be tested, else Pass. A report without results is Unknown.
func (r Report) Outcome() preflight.Outcome {
	out := preflight.Pass
	if len(r.Results) == 0 {
		return preflight.Unknown
	}
	for _, result := range r.Results {
		switch result.Outcome {
		case preflight.Fail:
			return preflight.Fail
		case preflight.Unknown:
			out = preflight.Unknown
		case preflight.Pass, preflight.Warn, preflight.Skipped:
		}
	}
	return out
}

func (r Report) verdict() document.Verdict {
	switch r.Outcome() {
	case preflight.Pass:
		return document.Verdict{Mark: document.Mark{Level: document.Good, Word: "Conforms"}, Meaning: "the check can be shipped."}
	case preflight.Fail:
		return document.Verdict{Mark: document.Mark{Level: document.Bad, Word: "Does not conform"}, Meaning: "do not ship the check."}
	case preflight.Unknown, preflight.Warn, preflight.Skipped:
	}
	return document.Verdict{Mark: document.Mark{Level: document.Unclear, Word: "Undecided"}, Meaning: "not all requirements could be tested."}
}

func (r Report) headline() string { return r.verdict().Word + ": " + r.verdict().Meaning }

// Document is the conclusion, the results for each check, those that need attention first, and
// the conclusion again.
func (r Report) Document(document.View) document.Document {
	made := document.Document{
		Title: "Conformance of checks", Source: "The JSON document has all data.",
		Blocks: []document.Block{r.verdict()},
	}
	for rest := r.Results; len(rest) > 0; {
		check := rest[0].Check
		end := slices.IndexFunc(rest, func(result requirement.Result) bool { return result.Check != check })
		if end < 0 {
			end = len(rest)
		}
		made.Blocks = append(made.Blocks, document.Section{Title: check, Blocks: blocksOf(rest[:end])})
		rest = rest[end:]
	}
	made.Blocks = append(made.Blocks, document.Paragraph{Text: r.headline()})
	return made
}

func blocksOf(results []requirement.Result) []document.Block {
	var items document.Items
	table := document.Table{Title: "Requirements", Columns: []string{"Outcome", "Requirement", "Result"}}
	for _, result := range results {
		outcome := strings.ToUpper(string(result.Outcome))
		if result.Outcome == preflight.Pass || result.Outcome == preflight.Skipped {
			table.Rows = append(table.Rows, []string{outcome, result.Requirement, result.Message})
			continue
		}
		level := map[preflight.Outcome]document.Level{
			preflight.Fail: document.Bad, preflight.Unknown: document.Unclear,
			preflight.Warn: document.Caution,
		}[result.Outcome]
		items.Entries = append(items.Entries, document.Item{
			Mark: document.Mark{Level: level, Word: outcome}, Names: []string{result.Requirement}, State: "(" + result.Reason + ")",
			Counts: result.Outcome != preflight.Warn, Message: result.Message, Remedy: result.Remediation,
		})
	}
	return []document.Block{items, table}
}

// MarshalJSON implements json.Marshaler: the outcome is included. HTML characters are not escaped.
func (r Report) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(struct {
		APIVersion string               `json:"apiVersion"`
		Kind       string               `json:"kind"`
		Outcome    preflight.Outcome    `json:"outcome"`
		Results    []requirement.Result `json:"results"`
	}{report.APIVersion, Kind, r.Outcome(), append([]requirement.Result{}, r.Results...)})
	return text.Bytes(), err
}

// JUnit contains a test case for each requirement, and one for the outcome, so that a report without results does not
// pass.
func (r Report) JUnit() junit.Results {
	var cases []junit.Case
	for _, result := range r.Results {
		text := strings.TrimSpace(result.Message + "\n" + result.Remediation)
		if result.Outcome == preflight.Warn {
			text = "warning: " + text
		}
		cases = append(cases, junit.Case{
			Suite: result.Check, Class: result.Check, Name: result.Requirement, Outcome: result.Outcome, Type: result.Reason,
			Message: result.Message, Text: text,
		})
	}
	outcome := r.Outcome()
	return junit.Results{Cases: append(cases, junit.Case{
		Suite: "conformance", Class: "conformance", Name: "Outcome", Outcome: outcome, Type: string(outcome), Message: r.headline(),
		Text: r.headline(),
	})}
}
