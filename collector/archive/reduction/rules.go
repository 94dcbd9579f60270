package reduction

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/archive/inventory"
)

// annotations that checks read; one that ends in a slash stands for all with that prefix.
func annotations() []string {
	return []string{
		"kubernetes.io/config.mirror",                                              // mirrors of static pods stay when a node is drained
		"meta.helm.sh/release-name", "argocd.argoproj.io/tracking-id", "olm.owner", // who installed an object
		"olm.operatorNamespace", "operatorframework.io/properties", // which releases an operator supports
		// the states of nodes and machines, and of hosted clusters
		"machineconfiguration.openshift.io/", "cluster.x-k8s.io/paused", "hypershift.openshift.io/",
		"openshift.io/scc", "openshift.io/required-scc", // which SecurityContextConstraints a pod has
		"openshift.io/node-selector", "scheduler.alpha.kubernetes.io/node-selector", // on which nodes the pods of a namespace run
		// which objects belong to the release
		"include.release.openshift.io/",
		// what was changed since
		"deployment.kubernetes.io/revision", "deployment.kubernetes.io/desired-replicas", "deprecated.daemonset.template.generation",
		"openshift.io/deployment-config.latest-version",
		"machine.openshift.io/machine",                                                            // which nodes are machines
		"batch.kubernetes.io/job-completion-index", "batch.kubernetes.io/job-index-failure-count", // how often an index may fail
		ownPrefix, // recorded runs
	}
}

// metadataOnly are the metadata fields that checks read of all objects. Selectors of other objects select by
// labels.
func metadataOnly() tree {
	t := fields("apiVersion", "kind")
	t["metadata"] = fields(
		"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "labels", "finalizers",
		"ownerReferences",
	)
	t["metadata"]["annotations"] = tree{}
	for _, name := range annotations() {
		t["metadata"]["annotations"][name] = nil
	}
	return t
}

func object(paths ...string) tree {
	t := metadataOnly()
	for path, below := range fields(paths...) {
		if path != "metadata" {
			t[path] = below
			continue
		}
		maps.Copy(t["metadata"], below)
	}
	return t
}

// writers are who has written an object, through which version and when.
func writers() []string {
	return under("metadata.managedFields", "manager", "operation", "apiVersion", "time", "subresource", "fieldsType")
}

// contentWriters are writers, with whether they wrote one of these fields.
func contentWriters(written ...string) []string {
	all := writers()
	for _, field := range written {
		all = append(all, "metadata.managedFields.fieldsV1.f:"+field+"."+none)
	}
	return all
}

// constraints are the fields of SecurityContextConstraints by which admission chooses among them.
func constraints() tree {
	return object(append(contentWriters("priority", "users", "groups"), "priority", "users", "groups", "volumes", "seccompProfiles",
		"allowPrivilegedContainer",
		"allowPrivilegeEscalation", "allowHostNetwork", "allowHostPID", "allowHostIPC", "allowHostPorts", "allowHostDirVolumePlugin",
		"readOnlyRootFilesystem",
		"allowedCapabilities", "defaultAddCapabilities", "requiredDropCapabilities", "runAsUser", "seLinuxContext", "fsGroup")...)
}

// podSpec are the fields of the specification of a pod on which its eviction, its placement, its quotas, its
// level of Pod Security and the accounts that use an API depend. Of volumes they have the types.
func podSpec() []string {
	const claims, container = "resourceClaims", "containers"
	all := []string{
		"nodeName", "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "schedulerName", "schedulingGates", "priority",
		"priorityClassName",
		"preemptionPolicy", "restartPolicy", "runtimeClassName", "terminationGracePeriodSeconds", "activeDeadlineSeconds", "overhead",
		"resources", claims + ".name", "serviceAccountName",
		"hostNetwork", "hostPID", "hostIPC", "hostUsers", "os",
	}
	all = append(all, under("securityContext", append(securityContext(), "supplementalGroups", "supplementalGroupsPolicy", "fsGroup",
		"fsGroupChangePolicy", "sysctls", "seLinuxChangePolicy")...)...)
	for _, containers := range []string{container, "initContainers"} {
		all = append(all, under(containers, "name", "resources", "ports", "restartPolicy")...)
		all = append(all, under(containers+".securityContext",
			append(securityContext(), "capabilities", "privileged", "readOnlyRootFilesystem", "allowPrivilegeEscalation", "procMount")...)...)
		all = append(all, under(containers+".startupProbe", "initialDelaySeconds", "periodSeconds", "failureThreshold")...)
	}
	return append(all, under("volumes", volumes()...)...)
}

// securityContext are the fields that pods and containers have, without accounts of Windows.
func securityContext() []string {
	return []string{
		"seLinuxOptions", "windowsOptions.hostProcess", "runAsUser", "runAsGroup", "runAsNonRoot", "seccompProfile",
		"appArmorProfile",
	}
}

// containerStates are which containers wait, and which have restarted.
func containerStates() []string {
	var all []string
	for _, containers := range []string{"status.containerStatuses", "status.initContainerStatuses"} {
		all = append(all, under(containers, "restartCount", "state.waiting.reason", "lastState.terminated.finishedAt")...)
	}
	return all
}

// volumes are the types of volumes, with the names of claims.
func volumes() []string {
	const claim = "persistentVolumeClaim"
	types := []string{claim + ".claimName"}
	for field := range reflect.TypeFor[corev1.VolumeSource]().Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != claim {
			types = append(types, name+"."+none)
		}
	}
	return types
}

func podSpecTree() tree { return fields(podSpec()...) }

func podTemplate() []string {
	return append(under("spec", podSpec()...), "metadata.labels", "metadata.finalizers")
}

func podTemplateTree() tree { return fields(podTemplate()...) }

// conditions are the fields of conditions without their messages.
func conditions() []string {
	return under("status.conditions", "type", "status", "reason", "lastUpdateTime", "lastTransitionTime", "lastProbeTime")
}

func workload(template string, paths ...string) tree {
	return object(slices.Concat(under(template, podTemplate()...), conditions(), paths)...)
}

// rules are the fields that checks read of each resource. If a rule keeps a whole part, such as the status,
// nothing in it is confidential except texts that users write.
func rules() map[inventory.Resource]tree {
	all := map[inventory.Resource]tree{}
	for group, resources := range map[string]map[string]tree{
		"": core(), "apps": apps(), "batch": batch(), "config.openshift.io": configuration(), "operator.openshift.io": operators(),
		"admissionregistration.k8s.io": admission(), "hypershift.openshift.io": hosted(),
		"apiextensions.k8s.io":   {"customresourcedefinitions": object("spec", "status")},
		"apiregistration.k8s.io": {"apiservices": object("spec.service", "spec.group", "spec.version", "status")},
		"apiserver.openshift.io": {"apirequestcounts": object("spec", "status")},
		"certificates.k8s.io": {"certificatesigningrequests": object("spec.signerName", "spec.username", "spec.groups",
			"spec.usages", "spec.expirationSeconds", "status.conditions")},
		"coordination.k8s.io":                 {"leases": object(append(writers(), "spec")...)},
		"discovery.k8s.io":                    {"endpointslices": object("addressType", "ports", "endpoints.conditions", "endpoints.nodeName")},
		"flowcontrol.apiserver.k8s.io":        {"flowschemas": object(writers()...), "prioritylevelconfigurations": object(writers()...)},
		"imageregistry.operator.openshift.io": {"configs": imageRegistry()},
		"migration.k8s.io":                    {"storageversionmigrations": object("status.conditions")},
		"kubevirt.io": {
			"kubevirts":               object("spec.configuration.evictionStrategy"),
			"virtualmachineinstances": object(append(conditions(), "spec.evictionStrategy")...),
		},
		"machine.openshift.io": {
			"machinehealthchecks": object("spec", "status"), "machines": object(),
			"machinesets": object("spec.replicas", "spec.selector", "status"),
		},
		"autoscaling.openshift.io": {
			"clusterautoscalers": object("spec.podPriorityThreshold", "spec.resourceLimits"),
			"machineautoscalers": object("spec.maxReplicas", "spec.scaleTargetRef"),
		},
		"metallb.io":                        {"l2advertisements": object("spec.nodeSelectors")},
		"node.k8s.io":                       {"runtimeclasses": object("overhead", "scheduling")},
		"quota.openshift.io":                {"clusterresourcequotas": object("spec.quota", "status")},
		"redhatcop.redhat.io":               {"keepalivedgroups": object("spec.nodeSelector")},
		"machineconfiguration.openshift.io": configurations(),
		"monitoring.coreos.com":             {"prometheusrules": object()},
		"operators.coreos.com": {
			"clusterserviceversions": object("status.phase", "status.reason", "status.message"),
			"subscriptions": object("status.installPlanRef", "status.installedCSV", "status.currentCSV", "status.state",
				"status.conditions"),
			"catalogsources": object("status.connectionState"),
		},
		"policy": {"poddisruptionbudgets": object("spec", "status")},
		"postgresql.cnpg.io": {"clusters": object("spec.instances", "spec.enablePDB", "spec.nodeMaintenanceWindow",
			"status.readyInstances")},
		"route.openshift.io": {"routes": object(append(under("status.ingress.conditions", "type", "status", "reason",
			"lastTransitionTime"), "spec.host", "status.ingress.host", "status.ingress.routerName")...)},
		"networking.k8s.io":     {"networkpolicies": object(contentWriters("spec")...)},
		"security.openshift.io": {"securitycontextconstraints": constraints()},
		"k8s.ovn.org": {
			"egressfirewalls": object("status.status"),
			"egressips":       object("spec.egressIPs", "status.items.egressIP"),
		},
		"scheduling.k8s.io":            {"priorityclasses": object("value", "globalDefault", "preemptionPolicy")},
		"storage.k8s.io":               storage(),
		"upgrade.managed.openshift.io": {"upgradeconfigs": object("spec", "status")},
	} {
		for name, fields := range resources {
			all[inventory.Resource{Group: group, Name: name}] = fields
		}
	}
	return all
}

func storage() map[string]tree {
	return map[string]tree{
		"csidrivers": object("spec.attachRequired"), "csinodes": object("spec"), "storageclasses": object("provisioner", "volumeBindingMode"),
		"volumeattachments": object("spec.attacher", "spec.nodeName", "spec.source.persistentVolumeName", "status.attached",
			"status.attachError.time"),
	}
}

func core() map[string]tree {
	return map[string]tree{
		"configmaps":  object(append(writers(), "data", "binaryData", "immutable")...),
		"secrets":     object("data", "type"),
		"limitranges": object(append(contentWriters("spec"), "spec")...),
		"namespaces":  object("spec", "status"),
		"nodes": object("spec.taints", "spec.unschedulable", "spec.providerID", "status.conditions", "status.allocatable", "status.capacity",
			"status.nodeInfo",
			"status.addresses", "status.phase"),
		"persistentvolumeclaims": object("spec.volumeName", "spec.storageClassName", "spec.accessModes", "spec.resources", "spec.selector",
			"status.phase"),
		"persistentvolumes": object("spec.nodeAffinity", "spec.csi.driver", "spec.claimRef", "spec.storageClassName", "spec.accessModes",
			"spec.capacity", "status.phase"),
		"pods": object(slices.Concat(under("spec", podSpec()...), conditions(), containerStates(),
			[]string{"status.phase", "status.startTime"})...),
		"replicationcontrollers": workload("spec.template", "spec.replicas", "spec.selector", "status.replicas", "status.readyReplicas"),
		"resourcequotas":         object(append(contentWriters("spec"), "spec", "status")...),
		"serviceaccounts":        object(),
		"services":               object("spec.type", "spec.selector", "spec.ports"),
	}
}

func apps() map[string]tree {
	counts := under("status", "replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "unavailableReplicas", "observedGeneration",
		"currentRevision",
		"updateRevision", "currentReplicas", "currentNumberScheduled", "desiredNumberScheduled", "numberAvailable", "numberMisscheduled",
		"numberReady",
		"numberUnavailable", "updatedNumberScheduled")
	of := workload("spec.template", append(counts, "spec.replicas", "spec.selector", "spec.strategy", "spec.updateStrategy", "spec.paused",
		"spec.minReadySeconds",
		"spec.podManagementPolicy", "spec.ordinals", "spec.volumeClaimTemplates.metadata.name")...)
	return map[string]tree{"daemonsets": of, "deployments": of, "replicasets": of, "statefulsets": of}
}

func batch() map[string]tree {
	job := []string{
		"spec.backoffLimit", "spec.backoffLimitPerIndex", "spec.parallelism", "spec.completions", "spec.suspend",
		"spec.podFailurePolicy", "status.active", "status.failed", "status.succeeded",
	}
	changed := append(writers(), "metadata.managedFields.fieldsV1.f:spec.f:jobTemplate."+none)
	return map[string]tree{
		"jobs": workload("spec.template", job...),
		"cronjobs": workload("spec.jobTemplate.spec.template",
			append(changed, "spec.schedule", "spec.timeZone", "spec.suspend", "status.lastSuccessfulTime", "status.lastScheduleTime")...),
	}
}

func configuration() map[string]tree {
	of := map[string]tree{
		"clusteroperators": object("spec", "status.conditions", "status.versions", "status.relatedObjects"),
		"clusterversions":  object(append(writers(), "spec", "status")...),
		"infrastructures": object("status.infrastructureName", "status.platform", "status.platformStatus.type",
			"status.platformStatus.azure.cloudName",
			"status.platformStatus.baremetal.loadBalancer.type", "status.platformStatus.openstack.loadBalancer.type",
			"status.platformStatus.ovirt.loadBalancer.type",
			"status.platformStatus.vsphere.loadBalancer.type", "status.platformStatus.nutanix.loadBalancer.type",
			"status.controlPlaneTopology", "status.infrastructureTopology", "status.cpuPartitioning", "status.apiServerURL",
			"status.apiServerInternalURI", "status.etcdDiscoveryDomain"),
	}
	for _, name := range []string{
		"clusterimagepolicies", "featuregates", "imagedigestmirrorsets", "images", "imagetagmirrorsets", "networks",
		"nodes", "proxies",
	} {
		of[name] = object("spec", "status")
	}
	return of
}

func operators() map[string]tree {
	of := map[string]tree{
		"imagecontentsourcepolicies": object("spec", "status"), "machineconfigurations": object("spec", "status"),
		"networks": object("spec.migration", "status.conditions"),
	}
	for _, name := range []string{
		"authentications", "etcds", "ingresscontrollers", "kubeapiservers", "kubestorageversionmigrators",
		"openshiftapiservers",
	} {
		of[name] = object("status.conditions")
	}
	return of
}

func imageRegistry() tree {
	paths := []string{"spec.managementState", "status.conditions"}
	for _, part := range []string{"spec.storage", "status.storage"} {
		for _, storage := range []string{"azure", "emptyDir", "gcs", "ibmcos", "oss", "pvc", "s3", "swift"} {
			paths = append(paths, part+"."+storage+"."+none)
		}
	}
	return object(paths...)
}

func configurations() map[string]tree {
	return map[string]tree{
		// who has paused it
		"machineconfignodes": object("spec", "status"),
		"machineconfigpools": object(append(writers(), "spec", "status", "metadata.managedFields.fieldsV1.f:spec.f:paused."+none)...),
		"machineconfigs":     object("spec.extensions", "spec.kernelType", "spec.osImageURL"), // and what keepConfiguration keeps
		"osimagestreams":     object("spec.defaultStream", "status.defaultStream"),
	}
}

func admission() map[string]tree {
	return map[string]tree{
		"mutatingwebhookconfigurations": object("webhooks"), "validatingwebhookconfigurations": object("webhooks"),
		"validatingadmissionpolicies":       object(append(writers(), "spec", "status")...),
		"validatingadmissionpolicybindings": object(append(writers(), "spec", "status")...),
	}
}

func hosted() map[string]tree {
	return map[string]tree{
		"hcpetcdbackups": object("spec", "status"), "hostedclusters": object(append(writers(), "spec", "status")...),
		"nodepools": object("spec", "status"),
	}
}
