package preflight

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// ManifestOptions are what a program does not know of the manifests that run
// it. All are required.
type ManifestOptions struct {
	// Name is that of the Job and of all that belongs to it: at most 40
	// lower-case letters, digits and dashes, so that the runner need not cut
	// it off for its suffix. Cluster roles have it too: put the component in.
	Name string
	// Namespace is where the Job runs: the operator's own.
	Namespace string
	// Image is the pull spec that image-references replaces by the release's
	// own, e.g. quay.io/openshift/origin-example-operator:latest. The program
	// is /bin/preflight in it.
	Image string
}

// maxManifestName leaves room, in the 57 bytes that a Job's name may have for
// those of its pods to fit, for the runner's suffix of eleven, and some.
const maxManifestName = 40

// Manifest makes the YAML that a release ships to have the checks run: a
// ServiceAccount; of the rules of all checks a ClusterRole and a Role for each
// namespace, with their bindings; and the Job. It is what --print-manifest
// prints: the same arguments give the same text. The Job keeps to the
// restricted pod security standard and promises a framed result. Where a check
// needs more, as a volume, the Job has to be written by hand.
//
// An error names everything that is wrong with the options or, as [Main] does,
// with the declarations of the checks.
func Manifest(options ManifestOptions, checks ...Check) ([]byte, error) {
	if err := validate(checks); err != nil {
		return nil, err
	}
	if err := options.validate(); err != nil {
		return nil, err
	}
	objects := append(options.access(checks), options.job())

	var text strings.Builder
	fmt.Fprintf(&text, "# Printed by the program; to change it, change the program and print it again:\n"+
		"# /bin/preflight --print-manifest --name=%s --namespace=%s --image=%s\n", options.Name, options.Namespace, options.Image)
	for i, object := range objects {
		if i > 0 {
			text.WriteString("---\n")
		}
		object.write(&text, "")
	}
	return []byte(text.String()), nil
}

func (o ManifestOptions) validate() error {
	var wrong []string
	if !dnsLabel(o.Name) || len(o.Name) > maxManifestName {
		wrong = append(wrong, fmt.Sprintf("name %q: want at most %d lower-case letters, digits and dashes", o.Name, maxManifestName))
	}
	if !dnsLabel(o.Namespace) {
		wrong = append(wrong, fmt.Sprintf("namespace %q: want at most %d lower-case letters, digits and dashes", o.Namespace, maxWord))
	}
	if len(o.Image) > 512 || !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]*$`).MatchString(o.Image) {
		wrong = append(wrong, fmt.Sprintf("image %.512q: want a pull spec like quay.io/openshift/origin-example-operator:latest", o.Image))
	}
	if len(wrong) > 0 {
		return errors.New("manifest: " + strings.Join(wrong, "; "))
	}
	return nil
}

// access is the ServiceAccount and what it may read.
func (o ManifestOptions) access(checks []Check) []mapping {
	rules := map[string][]mapping{} // by namespace
	var seen []Rule
	for _, c := range checks {
		for _, r := range c.Rules {
			same := func(other Rule) bool { return reflect.DeepEqual(r, other) }
			if slices.ContainsFunc(seen, same) {
				continue
			}
			seen = append(seen, r)
			rules[r.Namespace] = append(rules[r.Namespace], r.mapping())
		}
	}
	var namespaces []string
	for namespace := range rules {
		namespaces = append(namespaces, namespace)
	}
	slices.Sort(namespaces)

	objects := []mapping{o.object("v1", "ServiceAccount", o.Namespace)}
	for _, namespace := range namespaces {
		kind := "Role"
		if namespace == "" {
			kind = "ClusterRole"
		}
		objects = append(objects,
			append(o.object("rbac.authorization.k8s.io/v1", kind, namespace), field{"rules", rules[namespace]}),
			append(o.object("rbac.authorization.k8s.io/v1", kind+"Binding", namespace),
				field{"roleRef", mapping{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", kind}, {"name", o.Name}}},
				field{"subjects", []mapping{{{"kind", "ServiceAccount"}, {"name", o.Name}, {"namespace", o.Namespace}}}}))
	}
	return objects
}

// mapping is the rule in a role.
func (r Rule) mapping() mapping {
	m := mapping{{"apiGroups", r.APIGroups}, {"resources", r.Resources}}
	if len(r.ResourceNames) > 0 {
		m = append(m, field{"resourceNames", r.ResourceNames})
	}
	return append(m, field{"verbs", r.Verbs})
}

// object begins an object with the annotation that makes it one of a
// preflight. A cluster-wide one has no namespace.
func (o ManifestOptions) object(apiVersion, kind, namespace string) mapping {
	metadata := mapping{{"name", o.Name}}
	if namespace != "" {
		metadata = append(metadata, field{"namespace", namespace})
	}
	annotations := mapping{{"openshift.io/preflight-check", "true"}}
	if kind == "Job" {
		annotations = append(annotations, field{"preflight.openshift.io/result", "framed"})
	}
	return mapping{
		{"apiVersion", apiVersion},
		{"kind", kind},
		{"metadata", append(metadata, field{"annotations", annotations})},
	}
}

func (o ManifestOptions) job() mapping {
	container := mapping{
		{"name", "preflight"},
		{"image", o.Image},
		{"command", []string{"/bin/preflight"}},
		{"resources", mapping{{"requests", mapping{{"cpu", "10m"}, {"memory", "50Mi"}}}}},
		{"securityContext", mapping{
			{"allowPrivilegeEscalation", false},
			{"readOnlyRootFilesystem", true},
			{"capabilities", mapping{{"drop", []string{"ALL"}}}},
		}},
	}
	pod := mapping{
		{"serviceAccountName", o.Name},
		{"restartPolicy", "Never"},
		{"securityContext", mapping{
			{"runAsNonRoot", true},
			{"seccompProfile", mapping{{"type", "RuntimeDefault"}}},
		}},
		{"containers", []mapping{container}},
	}
	return append(o.object("batch/v1", "Job", o.Namespace), field{"spec", mapping{
		{"backoffLimit", 2},
		{"template", mapping{{"spec", pod}}},
	}})
}
