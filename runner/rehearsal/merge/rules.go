package merge

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ruleOf is nil for a kind that has no rule of its own.
func ruleOf(kind schema.GroupVersionKind) rule {
	switch kind.GroupVersion().String() + " " + kind.Kind {
	case "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration":
		return trusting(keepBundleOfWebhooks, described("webhooks", webhooks()))
	case "apiextensions.k8s.io/v1 CustomResourceDefinition":
		return trusting(keepBundleOfConversion, described("spec", definition()))
	case "apps/v1 DaemonSet":
		return described("spec", object(fields{"selector": replace[*metav1.LabelSelector], "template": template()}))
	case "apps/v1 Deployment":
		return described("spec", deployment())
	case "batch/v1 CronJob":
		return described("spec", cronJob())
	case "batch/v1 Job":
		return described("spec", job())
	case "v1 ConfigMap":
		return object(fields{"metadata": metadata(), "data": entries[string](), "binaryData": entries[[]byte]()})
	case "v1 Namespace", "config.openshift.io/v1 ClusterOperator": // the latter in pkg/cvo/internal/operatorstatus.go
		return object(fields{"metadata": metadata()})
	case "v1 Service":
		return described("spec", service())
	case "v1 ServiceAccount":
		return described("automountServiceAccountToken", replace[*bool])
	case "image.openshift.io/v1 ImageStream":
		return described("spec", imageStream())
	case "operators.coreos.com/v1 OperatorGroup":
		return described("spec", operatorGroup())
	case "rbac.authorization.k8s.io/v1 ClusterRole":
		return clusterRole
	case "rbac.authorization.k8s.io/v1 Role":
		return described("rules", replace[[]rbacv1.PolicyRule])
	case "rbac.authorization.k8s.io/v1 ClusterRoleBinding", "rbac.authorization.k8s.io/v1 RoleBinding":
		role := with(replace[rbacv1.RoleRef], zero("apiGroup", rbacv1.GroupName))
		return object(fields{"metadata": metadata(), "subjects": replace[[]rbacv1.Subject], "roleRef": role})
	case "security.openshift.io/v1 SecurityContextConstraints":
		return constraints()
	}
	return nil
}

func described(field string, of rule) rule {
	return object(fields{"metadata": metadata(), field: of})
}

func metadata() rule {
	return object(all(ifSet(replace[string]), "name", "namespace"), all(entries[string](), "labels", "annotations"),
		fields{"ownerReferences": added("uid", replace[metav1.OwnerReference])})
}

func deployment() rule {
	rolling := func(value any) computed {
		return func(spec any, _ map[string]any) any {
			content, _ := mapping(spec)
			if strategy, _ := mapping(content["strategy"]); strategy["type"] != "RollingUpdate" {
				return nil
			}
			return value
		}
	}
	return orElse(map[string]any{}, with(object(all(ifSet(replace[*int32]), "revisionHistoryLimit", "progressDeadlineSeconds"), fields{
		"replicas": orElse(int64(1), replace[*int32]), "paused": replace[bool], "minReadySeconds": replace[int32],
		"selector": replace[*metav1.LabelSelector], "strategy": replace[appsv1.DeploymentStrategy], "template": template(),
	}), absent("strategy", map[string]any{}), zero("strategy.type", "RollingUpdate"),
		absent("strategy.rollingUpdate", rolling(map[string]any{})),
		absent("strategy.rollingUpdate.maxUnavailable", rolling("25%")), absent("strategy.rollingUpdate.maxSurge", rolling("25%"))))
}

func cronJob() rule {
	return object(fields{
		"schedule": replace[string], "timeZone": replace[*string], "concurrencyPolicy": orElse("Allow", replace[string]),
		"startingDeadlineSeconds": replace[*int64], "suspend": orElse(false, replace[*bool]), "jobTemplate": described("spec", job()),
		"successfulJobsHistoryLimit": orElse(int64(3), replace[*int32]), "failedJobsHistoryLimit": orElse(int64(1), replace[*int32]),
	})
}

func job() rule {
	return object(all(replace[*int32], "parallelism", "completions", "ttlSecondsAfterFinished"), fields{
		"activeDeadlineSeconds": replace[*int64], "manualSelector": replace[*bool], "suspend": orElse(false, replace[*bool]),
		"backoffLimit": orElse(int64(6), replace[*int32]), "completionMode": orElse("NonIndexed", replace[*string]),
		"podFailurePolicy": replace[*batchv1.PodFailurePolicy], "template": template(),
	})
}

func template() rule {
	hostPort := computed(func(pod any, port map[string]any) any {
		if spec, _ := mapping(pod); spec["hostNetwork"] == true {
			return port["containerPort"]
		}
		return nil
	})
	affinity := object(fields{
		"nodeAffinity": replace[*corev1.NodeAffinity], "podAffinity": replace[*corev1.PodAffinity],
		"podAntiAffinity": replace[*corev1.PodAntiAffinity],
	})
	spec := object(all(exactly("name", container()), "initContainers", "containers"),
		all(ifSet(replace[string]), "restartPolicy", "serviceAccountName", "priorityClassName"),
		all(replace[*bool], "automountServiceAccountToken", "hostUsers", "shareProcessNamespace"), fields{
			"volumes": exactly("name", volume()), "nodeSelector": entries[string](), "tolerations": distinct[corev1.Toleration](),
			"hostNetwork": replace[bool], "priority": replace[*int32], "affinity": ifSet(pointer(affinity)), "securityContext": podSecurity,
			"dnsPolicy": orElse("ClusterFirst", replace[string]), "terminationGracePeriodSeconds": orElse(int64(30), replace[*int64]),
		})
	return described("spec", with(spec, zero("containers.*.ports.*.hostPort", hostPort), zero("initContainers.*.ports.*.hostPort", hostPort)))
}

// podSecurity is for the security context of a pod, where the API server adds an empty one.
func podSecurity(was, want any) (any, bool) {
	if have, isRead := mapping(was); isRead && len(have) == 0 && want == nil {
		return was, false
	}
	return pointer(object(security(), fields{
		"runAsGroup": replace[*int64], "fsGroup": replace[*int64],
		"supplementalGroups": missing[int64](), "sysctls": added("name", replace[corev1.Sysctl]),
	}))(was, want)
}

// security has what the security contexts of pods and of containers have in common.
func security() fields {
	return fields{
		"seLinuxOptions": pointer(object(all(ifSet(replace[string]), "user", "role", "type", "level"))),
		"seccompProfile": replace[*corev1.SeccompProfile], "runAsUser": replace[*int64], "runAsNonRoot": replace[*bool],
	}
}

func container() rule {
	probe := pointer(with(object(
		all(replace[int32], "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"), fields{
			"exec": replace[*corev1.ExecAction], "httpGet": replace[*corev1.HTTPGetAction],
			"tcpSocket": replace[*corev1.TCPSocketAction], "grpc": replace[*corev1.GRPCAction],
		}), zero("timeoutSeconds", int64(1)), zero("periodSeconds", int64(10)), zero("successThreshold", int64(1)),
		zero("failureThreshold", int64(3)), zero("httpGet.scheme", "HTTP")))
	context := object(security(), all(replace[*bool], "privileged", "allowPrivilegeEscalation", "readOnlyRootFilesystem"), fields{
		"capabilities": pointer(object(all(missing[string](), "add", "drop"))),
	})
	return with(object(all(ifSet(replace[string]), "image", "workingDir"), all(replace[[]string], "command", "args"), fields{
		"env": replace[[]corev1.EnvVar], "envFrom": replace[[]corev1.EnvFromSource],
		"resources": object(all(replace[corev1.ResourceList], "limits", "requests")),
		"ports":     exactly("name", replace[corev1.ContainerPort]), "volumeMounts": exactly("mountPath", replace[corev1.VolumeMount]),
		"livenessProbe": probe, "readinessProbe": probe, "securityContext": pointer(context),
	}), zero("env.*.valueFrom.fieldRef.apiVersion", "v1"), zero("ports.*.protocol", "TCP"))
}

func volume() rule {
	sourceless := computed(func(_ any, volume map[string]any) any {
		for name, source := range volume {
			if name != "name" && source != nil {
				return nil
			}
		}
		return map[string]any{}
	})
	return with(replace[corev1.Volume], absent("emptyDir", sourceless), absent("hostPath.type", ""),
		absent("secret.defaultMode", int64(0o644)), absent("configMap.defaultMode", int64(0o644)),
		absent("downwardAPI.defaultMode", int64(0o644)), absent("projected.defaultMode", int64(0o644)),
		absent("projected.sources.*.serviceAccountToken.expirationSeconds", int64(3600)),
		zero("iscsi.iscsiInterface", "default"), zero("scaleIO.storageMode", "ThinProvisioned"), zero("scaleIO.fsType", "xfs"),
		zero("rbd.pool", "rbd"), zero("rbd.user", "admin"), zero("rbd.keyring", "/etc/ceph/keyring"),
		absent("azureDisk.cachingMode", "ReadWrite"), absent("azureDisk.kind", "Shared"), absent("azureDisk.fsType", "ext4"),
		absent("azureDisk.readOnly", false))
}

func service() rule {
	samePort := computed(func(_ any, port map[string]any) any { return port["port"] })
	return object(fields{
		"ports": exactly("name", with(replace[corev1.ServicePort], zero("protocol", "TCP"), zero("targetPort", samePort))),
		"type":  orElse("ClusterIP", replace[string]), "selector": replace[map[string]string],
	})
}

func imageStream() rule {
	policy := object(all(replace[bool], "insecure", "scheduled"), fields{"importMode": replace[string]})
	tag := with(object(fields{"importPolicy": policy, "from": replace[*corev1.ObjectReference]}),
		absent("importPolicy", map[string]any{}), zero("importPolicy.importMode", "Legacy"))
	return object(fields{"lookupPolicy": object(fields{"local": replace[bool]}), "tags": added("name", tag)})
}

func operatorGroup() rule {
	return object(fields{
		"selector": replace[*metav1.LabelSelector], "targetNamespaces": replace[[]string], "serviceAccountName": ifSet(replace[string]),
		"staticProvidedAPIs": replace[bool], "upgradeStrategy": orElse("Default", replace[string]),
	})
}

// clusterRole leaves the rules of an aggregated role: the control plane writes them.
func clusterRole(was, want any) (any, bool) {
	of := fields{"metadata": metadata(), "aggregationRule": replace[*rbacv1.AggregationRule]}
	if stated, _ := mapping(want); stated["aggregationRule"] == nil {
		of["rules"] = replace[[]rbacv1.PolicyRule]
	}
	return object(of)(was, want)
}

func constraints() rule {
	type ranges []struct {
		Min int64 `json:"min"`
		Max int64 `json:"max"`
	}
	type drivers []struct {
		Driver string `json:"driver"`
	}
	return object(all(replace[bool], "allowPrivilegedContainer", "allowHostDirVolumePlugin", "allowHostNetwork", "allowHostPorts",
		"allowHostPID", "allowHostIPC", "readOnlyRootFilesystem"),
		all(replace[[]string], "defaultAddCapabilities", "requiredDropCapabilities", "allowedCapabilities", "volumes", "users", "groups",
			"seccompProfiles", "allowedUnsafeSysctls", "forbiddenSysctls"),
		all(object(fields{"type": replace[string], "ranges": replace[ranges]}), "fsGroup", "supplementalGroups"),
		fields{
			"metadata": metadata(), "priority": replace[*int32], "allowedFlexVolumes": replace[drivers],
			"defaultAllowPrivilegeEscalation": replace[*bool], "allowPrivilegeEscalation": orElse(true, replace[*bool]),
			"seLinuxContext": object(fields{"type": replace[string], "seLinuxOptions": replace[*corev1.SELinuxOptions]}),
			"runAsUser":      object(all(replace[*int64], "uid", "uidRangeMin", "uidRangeMax"), fields{"type": replace[string]}),
		})
}

func webhooks() rule {
	return with(replace[[]admissionregistrationv1.ValidatingWebhook],
		absent("*.failurePolicy", "Fail"), absent("*.matchPolicy", "Equivalent"), absent("*.timeoutSeconds", int64(10)),
		absent("*.namespaceSelector", map[string]any{}), absent("*.objectSelector", map[string]any{}), absent("*.rules.*.scope", "*"))
}

// definition has the defaults, too, that CVO gets from the scheme in which it decodes the manifest.
func definition() rule {
	singular := computed(func(_ any, names map[string]any) any {
		kind, _ := names["kind"].(string)
		return strings.ToLower(kind)
	})
	list := computed(func(_ any, names map[string]any) any {
		kind, _ := names["kind"].(string)
		return kind + "List"
	})
	return with(replace[apiextensionsv1.CustomResourceDefinitionSpec], zero("names.singular", singular), zero("names.listKind", list),
		absent("conversion", map[string]any{"strategy": "None"}), absent("conversion.webhook.clientConfig.service.port", int64(443)))
}

// trusting leaves the CA bundles of an object in which the service CA operator injects them.
func trusting(keep func(want, was map[string]any), of rule) rule {
	return shaped(mapping, func(was, want map[string]any) (any, bool) {
		stated := runtime.DeepCopyJSON(want)
		if isTrusting(was, want) {
			keep(stated, was)
		}
		return of(was, stated)
	})
}

// isTrusting reports whether the annotations say so after their merge.
func isTrusting(was, want map[string]any) bool {
	for _, each := range []map[string]any{want, was} {
		value, found, err := unstructured.NestedString(each, "metadata", "annotations", "service.beta.openshift.io/inject-cabundle")
		if found && err == nil {
			return value == "true"
		}
	}
	return false
}

// keepBundleOfWebhooks takes the bundle of the first webhook: all have the same.
func keepBundleOfWebhooks(want, was map[string]any) {
	old, _ := rows(was["webhooks"])
	stated, _ := rows(want["webhooks"])
	if len(old) == 0 {
		return
	}
	from, _ := mapping(old[0]["clientConfig"])
	for _, each := range stated {
		if config, isRead := mapping(each["clientConfig"]); isRead {
			config = copied(config)
			put(config, "caBundle", from["caBundle"])
			each["clientConfig"] = config
		}
	}
}

func keepBundleOfConversion(want, was map[string]any) {
	to, isStated := clientConfig(want)
	from, isRead := clientConfig(was)
	if strategy, _, _ := unstructured.NestedString(want, "spec", "conversion", "strategy"); isStated && isRead && strategy == "Webhook" {
		put(to, "caBundle", from["caBundle"])
	}
}

func clientConfig(definition map[string]any) (map[string]any, bool) {
	config, _, _ := unstructured.NestedFieldNoCopy(definition, "spec", "conversion", "webhook", "clientConfig") // nil with an error
	content, ok := config.(map[string]any)
	return content, ok
}
