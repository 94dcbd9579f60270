package manifestpolicy

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
)

// ReasonRefusedControlPlane is the reason of what only the guest of a hosted cluster permits.
var ReasonRefusedControlPlane = finding.NewReason("RefusedControlPlane", finding.Explanation{
	Meaning: "Reported for a check for the management cluster of a hosted cluster whose manifest reads Secrets, or objects " +
		"outside of the namespace of the control plane, or that is not of the release.",
	Cause: "The Secrets of that namespace are the credentials of etcd and of the guest, with which a check could write, " +
		"and its neighbors are the control planes of others.",
	Remedy: "Report it to the owners of the component. To update without this check, accept the finding.",
})

const noSecrets = "the Secrets of a control plane are credentials to which the read-only guard does not apply"

// ControlPlane are the violations of an object of a check that runs in the namespace of a control plane, in
// addition to those of any check.
func ControlPlane(object runtime.Object) []Violation {
	switch object := object.(type) {
	case *batchv1.Job:
		return secretsOf("spec.template.spec", object.Spec.Template.Spec)
	case *rbacv1.Role:
		return secretRules(object.Rules)
	case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
		return []Violation{{ReasonRefusedControlPlane, "kind", "a check of the management cluster reads in the namespace of the control plane only: use a Role and a RoleBinding"}}
	}
	return nil
}

// OfSite are the violations of a check of the site on that side: only the release is trusted in the management
// cluster.
func OfSite(side check.Side) []Violation {
	if side != check.Management {
		return nil
	}
	return []Violation{{ReasonRefusedControlPlane, "metadata.annotations", "a check of the site runs in the guest, not in the namespace of a control plane"}}
}

// secretsOf are the Secrets that the containers of a pod would read.
func secretsOf(path string, spec corev1.PodSpec) []Violation {
	var fields []field
	for i, volume := range spec.Volumes {
		fields = append(fields, field{fmt.Sprintf("volumes[%d].secret", i), volume.Secret != nil, noSecrets})
		if volume.Projected == nil {
			continue
		}
		for j, source := range volume.Projected.Sources {
			fields = append(fields, field{fmt.Sprintf("volumes[%d].projected.sources[%d].secret", i, j), source.Secret != nil, noSecrets})
		}
	}
	violations := violationsOf(ReasonRefusedControlPlane, path, fields)
	return append(append(violations, secretVariables(path+".initContainers", spec.InitContainers)...), secretVariables(path+".containers", spec.Containers)...)
}

func secretVariables(path string, containers []corev1.Container) []Violation {
	var violations []Violation
	for i, container := range containers {
		var fields []field
		for j, from := range container.EnvFrom {
			fields = append(fields, field{fmt.Sprintf("envFrom[%d].secretRef", j), from.SecretRef != nil, noSecrets})
		}
		for j, variable := range container.Env {
			fields = append(fields, field{fmt.Sprintf("env[%d].valueFrom.secretKeyRef", j), variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil, noSecrets})
		}
		violations = append(violations, violationsOf(ReasonRefusedControlPlane, fmt.Sprintf("%s[%d]", path, i), fields)...)
	}
	return violations
}

func secretRules(rules []rbacv1.PolicyRule) []Violation {
	var violations []Violation
	for i, rule := range rules {
		if includes(rule.APIGroups, "") && includes(rule.Resources, "secrets") {
			violations = append(violations, Violation{ReasonRefusedControlPlane, fmt.Sprintf("rules[%d].resources", i), noSecrets})
		}
	}
	return violations
}
