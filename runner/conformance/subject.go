package conformance

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/registry"
)

// Subject is what is to be tried.
type Subject struct {
	release *payload.Release
	// access finds the digests of tags.
	access *registry.Access
	// images are what the manifests call their images, with what became of each.
	images map[string]image
}

// image is what became of one image of a manifest.
type image struct {
	// pullSpec is by digest; empty when there is none, for the reason err.
	pullSpec string
	err      error
}

// Substitution says which image stands for one that a manifest names.
type Substitution struct {
	// Source is what manifests call the image, without tag and digest. Empty
	// stands for every image.
	Source string
	// PullSpec is the image to run.
	PullSpec string
}

// ParseSubstitution reads "SOURCE=PULLSPEC" or "PULLSPEC".
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

// Manifests is the subject of manifests as they lie in an operator's
// repository, by the name of the file. Their images have tags there, in whose
// place the release build puts digests; so do the substitutions, and where none
// is given, the digest that the tag has at this moment, which access finds.
func Manifests(ctx context.Context, files map[string][]byte, substitutions []Substitution, access *registry.Access) (Subject, error) {
	release, err := payload.ReadManifests(files)
	if err != nil {
		return Subject{}, err
	}
	if len(release.Jobs) == 0 && len(release.Problems) == 0 {
		return Subject{}, fmt.Errorf("no manifest has a Job with the annotation %s: \"true\"", payload.Annotation)
	}
	s := Subject{release: release, images: map[string]image{}, access: access}
	s.resolve(ctx, substitutions)
	return s, nil
}

// Program is the subject of an image alone: its /bin/preflight is run by a Job
// that promises a framed result, without any rights, in a namespace of its own.
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
	s := Subject{release: &payload.Release{Jobs: []payload.Job{{File: "preflight.yaml", Component: "image", Job: job}}}, images: map[string]image{}, access: access}
	s.resolve(ctx, nil)
	return s
}

// resolve puts digests in the place of tags, and lists the images as a release
// would. One that cannot be resolved is left, and refused with its manifest.
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
	return payload.Resolve(ctx, pullSpec, s.access)
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

// imagesOf are the places where a Job names its images.
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

// unreadable are the results about manifests that cannot be read as they are.
func (s Subject) unreadable() []Result {
	var results []Result
	for _, problem := range s.release.Problems {
		results = append(results, Result{
			Check: problem.Evidence["file"], Requirement: requirementManifest, Outcome: problem.Outcome,
			Reason: problem.Reason, Message: problem.Message, Remediation: problem.Remediation,
		})
	}
	return results
}

// refused are the results about Jobs that a preflight would not run.
func (s Subject) refused(findings []finding.Finding) []Result {
	var results []Result
	for _, f := range findings {
		result := Result{
			Check: f.Name, Requirement: requirementManifest, Outcome: preflight.Fail, Reason: f.Reason, Message: f.Message,
			Remediation: "Correct the manifest: no preflight runs it as it is.",
		}
		if f.Reason == "RefusedImage" {
			result.Requirement = requirementImage
			result.Message += s.unresolved()
			result.Remediation = "Push the image, or name the one to run: --image PULLSPEC"
		}
		results = append(results, result)
	}
	return results
}

// unresolved says why images have no digest.
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

// describeImages says what a check's manifests call its images, and what is run.
func (s Subject) describeImages(check launch.Check) string {
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

// notTaken are the results about Jobs that the API server does not take.
func notTaken(findings []finding.Finding) []Result {
	var results []Result
	for _, f := range findings {
		outcome := preflight.Unknown
		if f.Reason == "InvalidManifest" {
			outcome = preflight.Fail
		}
		results = append(results, Result{
			Check: f.Name, Requirement: requirementManifest, Outcome: outcome,
			Reason: f.Reason, Message: f.Message, Remediation: f.Remediation,
		})
	}
	return results
}

// bound is true when a binding of the plan gives the account rights.
func bound(plan launch.Plan, namespace, name string) bool {
	for _, object := range plan.Supporting {
		var subjects []rbacv1.Subject
		switch binding := object.(type) {
		case *rbacv1.RoleBinding:
			subjects = binding.Subjects
		case *rbacv1.ClusterRoleBinding:
			subjects = binding.Subjects
		}
		for _, subject := range subjects {
			if subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == namespace && subject.Name == name {
				return true
			}
		}
	}
	return false
}
