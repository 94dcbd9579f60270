package intrusion_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// made is an object of which these managers wrote the spec.
func made(kind, namespace, name string, managers ...string) fields {
	apiVersion := "v1"
	if kind == "NetworkPolicy" {
		apiVersion = "networking.k8s.io/v1"
	}
	return fields{"apiVersion": apiVersion, "kind": kind, "metadata": fields{
		"namespace": namespace, "name": name,
		"managedFields": written(`{"f:metadata":{},"f:spec":{"f:hard":{}}}`, managers...),
	}}
}

// marked is an object with more metadata.
func marked(object, more fields) fields {
	maps.Copy(object["metadata"].(fields), more) //nolint:forcetypeassert,errcheck // by made
	return object
}

func counting(object, hard, used fields) fields {
	object["status"] = fields{"hard": hard, "used": used}
	return object
}

func TestRestrictions(t *testing.T) {
	const namespace = "openshift-monitoring"
	const found = "PlatformRestrictions-" + namespace
	policy := func(managers ...string) world {
		return world{policies: []fields{made("NetworkPolicy", namespace, "deny-all", managers...)}}
	}
	quota := func(hard, used fields) world {
		return world{quotas: []fields{counting(made("ResourceQuota", namespace, "small", "oc"), hard, used)}}
	}
	status := fields{
		"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "subresource": "status",
		"fieldsType": "FieldsV1", "fieldsV1": fields{"f:status": fields{}},
	}
	labeler := fields{
		"manager": "labeler", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
		"fieldsV1": fields{"f:metadata": fields{"f:labels": fields{}}},
	}
	all := world{
		policies: policy("Mozilla").policies, quotas: quota(fields{"pods": "10"}, fields{"pods": "9"}).quotas,
		ranges: []fields{made("LimitRange", namespace, "defaults", "argocd-controller"), made("LimitRange", "kube-system", "defaults", "oc")},
	}
	for name, tc := range map[string]row{
		"Policy": {
			reason: "a person made it", world: policy("oc"), want: []string{found},
			message: []string{`NetworkPolicy "deny-all" by oc`},
		},
		"Patched": {
			reason: "kubectl has a name for each verb", world: policy("kubectl-client-side-apply", "kubectl-edit"),
			want: []string{found},
		},
		"GitOps": {reason: "a tool applies what a person wrote", world: policy("argocd-controller"), want: []string{found}},
		"Namespace": {
			reason: "one finding for each namespace", world: all, want: []string{found, "PlatformRestrictions-kube-system"},
			message: []string{`NetworkPolicy "deny-all" by Mozilla; ResourceQuota "small" by oc; LimitRange "defaults" by argocd-controller`},
		},
		"Status": {reason: "the controller wrote the status, not the object", world: world{quotas: []fields{marked(made("ResourceQuota",
			namespace, "small"), fields{"managedFields": append(written(`{"f:spec":{}}`, "oc"), status)})}}, want: []string{found}},
		"Labels": {reason: "a program set a label", world: world{policies: []fields{marked(made("NetworkPolicy", namespace, "a"),
			fields{"managedFields": append(written(`{"f:spec":{}}`, "oc"), labeler)})}}, want: []string{found}},
		"Left": {
			reason: "there is room for one more pod",
			world:  quota(fields{"pods": "10", "requests.cpu": "10"}, fields{"pods": "9", "requests.cpu": "9500m"}), want: []string{found},
		},
		"Devices": {reason: "pods of the platform request no such device", world: quota(fields{
			"requests.nvidia.com/gpu": "0",
			"requests.storage":        "0",
		}, fields{"requests.nvidia.com/gpu": "0", "requests.storage": "0"}), want: []string{found}},
		"Operator": {reason: "an operator made it", world: policy("cluster-monitoring-operator")},
		"Edited":   {reason: "an operator made it, and a person changed it", world: policy("operator", "kubectl-edit")},
		"LikeOC":   {reason: "the name of an operator begins as that of a client", world: policy("ocs-operator")},
		"Owned": {reason: "an operator owns it", world: world{policies: []fields{marked(made("NetworkPolicy", namespace, "a", "oc"),
			fields{"ownerReferences": []fields{{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "1"}}})}}},
		"OfRelease": {
			reason: "the release has it",
			world:  world{policies: []fields{marked(made("NetworkPolicy", namespace, "a", "oc"), ofRelease)}},
		},
		"NoFields": {reason: "an archive may have no managed fields", world: world{policies: []fields{made("NetworkPolicy", namespace, "a")}}},
		"Annotated": {reason: "a person wrote a label alone", world: world{policies: []fields{marked(made("NetworkPolicy", namespace, "a"),
			fields{"managedFields": written(`{"f:metadata":{"f:labels":{}}}`, "oc")})}}},
		"UsersOwn": {
			reason: "in a namespace of a user",
			world:  world{quotas: []fields{counting(made("ResourceQuota", "team", "small", "oc"), fields{"pods": "1"}, fields{"pods": "1"})}},
		},
		"LikeOurs": {
			reason: "the name begins as that of the platform",
			world:  world{policies: []fields{made("NetworkPolicy", "openshiftish", "a", "oc")}},
		},
	} {
		t.Run(name, func(t *testing.T) { tc.test(t, "UsersRestrictPlatform") })
	}
	const exhausted = "PlatformQuota-" + namespace + "-small"
	for name, tc := range map[string]row{
		"Pods": {
			reason: "no pod is left", world: quota(fields{"pods": "10"}, fields{"pods": "10"}), want: []string{exhausted},
			message: []string{"10 of 10 pods"},
		},
		"Count": {
			reason: "counted by the other name", world: quota(fields{"count/pods": "1"}, fields{"count/pods": "1"}),
			want: []string{exhausted},
		},
		"CPU": {reason: "no CPU is left, in another unit", world: quota(fields{"pods": "100", "requests.cpu": "2"},
			fields{"pods": "3", "requests.cpu": "2000m"}), want: []string{exhausted}, message: []string{"2 of 2 requests.cpu"}},
		"Over": {
			reason: "more is used than allowed, since the quota is newer", world: quota(fields{"memory": "1Gi"}, fields{"memory": "2Gi"}),
			want: []string{exhausted},
		},
		"Limits": {
			reason: "nor a limit", world: quota(fields{"limits.memory": "1Gi"}, fields{"limits.memory": "1Gi"}),
			want: []string{exhausted},
		},
		"None": {reason: "nothing is allowed, and nothing is there", world: quota(fields{"pods": "0"}, nil), want: []string{exhausted}},
	} {
		t.Run(name, func(t *testing.T) { tc.test(t, "UsersQuotaExhausted") })
	}
}

func TestRestrictionsBounded(t *testing.T) {
	var w world
	for i := range 60 {
		w.policies = append(w.policies, made("NetworkPolicy", "openshift-monitoring", fmt.Sprintf("a%03d-%s", i, strings.Repeat("x", 200)), "oc"))
		w.quotas = append(w.quotas, counting(made("ResourceQuota", "openshift-monitoring", fmt.Sprintf("a%03d", i),
			"kubectl-\x1b[2J"+strings.Repeat("x", 5000)), fields{"pods": "0"}, nil))
	}
	bounded(t, run(t, w))
}
