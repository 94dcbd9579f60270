package intrusion

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	namePlatformPodsSCC = finding.NewName("PlatformPodsSCC",
		"SecurityContextConstraints of a user, found by the check PlatformPods: PlatformPodsSCC-<name>.")

	reasonUsersSCC = finding.NewReason("UsersSCCForPlatformPods", finding.Explanation{
		Meaning: "SecurityContextConstraints of a user take precedence for pods of the platform. The update recreates these pods, and " +
			"admission then runs them with the restrictions of the user's SCC, such as a read-only root file system.",
		Cause: "The SCC applies to all users, or to the service accounts of the platform, and its priority is higher than the priority " +
			"of the pods' current SCC, or equal while the SCC is stricter. The pods do not name an SCC.",
		Remedy: "Remove the priority of the SCC, and allow it for the service accounts of your workloads instead of a group: " +
			"`oc get scc NAME -o yaml`.",
	})
)

// constraint is the part of SecurityContextConstraints that decides about a pod here.
type constraint struct {
	metav1.ObjectMeta `json:"metadata"`

	Priority *int32   `json:"priority"`
	Users    []string `json:"users"`
	Groups   []string `json:"groups"`

	AllowPrivilegedContainer bool  `json:"allowPrivilegedContainer"`
	AllowPrivilegeEscalation *bool `json:"allowPrivilegeEscalation"`
	AllowHostNetwork         bool  `json:"allowHostNetwork"`
	AllowHostPID             bool  `json:"allowHostPID"`
	AllowHostIPC             bool  `json:"allowHostIPC"`
	AllowHostPorts           bool  `json:"allowHostPorts"`
	AllowHostDirVolumePlugin bool  `json:"allowHostDirVolumePlugin"`
	ReadOnlyRootFilesystem   bool  `json:"readOnlyRootFilesystem"`

	Volumes                  []string            `json:"volumes"`
	SeccompProfiles          []string            `json:"seccompProfiles"`
	AllowedCapabilities      []corev1.Capability `json:"allowedCapabilities"`
	DefaultAddCapabilities   []corev1.Capability `json:"defaultAddCapabilities"`
	RequiredDropCapabilities []corev1.Capability `json:"requiredDropCapabilities"`

	RunAsUser      strategy `json:"runAsUser"`
	SELinuxContext strategy `json:"seLinuxContext"`
	FSGroup        strategy `json:"fsGroup"`
}

type strategy struct {
	Type string `json:"type"`
}

// priority is the priority that admission uses: 0 if none is set.
func (c *constraint) priority() int32 {
	if c.Priority == nil {
		return 0
	}
	return *c.Priority
}

// before reports whether admission tries an SCC before another: the one with the higher priority, then the stricter one,
// then by name (openshift/apiserver-library-go pkg/securitycontextconstraints/util/sort, ByPriority).
func (c *constraint) before(other *constraint) bool {
	return cmp.Or(cmp.Compare(other.priority(), c.priority()), slices.Compare(c.laxity(), other.laxity()), cmp.Compare(c.Name, other.Name)) < 0
}

// laxity returns the values that admission compares for SCCs with the same priority: the first difference decides
// (there, ByRestrictions adds points, and the points of each line exceed the sum of all following ones).
func (c *constraint) laxity() []int {
	asAny := map[string]int{"RunAsAny": 4, "MustRunAsNonRoot": 3, "MustRunAsRange": 2, "MustRunAs": 1}
	capabilities := 5000 + 300*len(c.DefaultAddCapabilities)
	if has(c.AllowedCapabilities, "*") || has(c.AllowedCapabilities, "ALL") {
		capabilities += 4000
	} else {
		capabilities += 10 * len(c.AllowedCapabilities)
	}
	if has(c.RequiredDropCapabilities, "ALL") {
		capabilities -= 3000
	} else {
		capabilities -= 50 * len(c.RequiredDropCapabilities)
	}
	return []int{
		one(c.AllowPrivilegedContainer), one(c.AllowHostPorts), one(c.AllowHostNetwork), c.volumes(),
		asAny[c.RunAsUser.Type] + asAny[c.SELinuxContext.Type], min(max(capabilities, 0), 9999),
	}
}

// one is 1 for a field that is set.
func one[T comparable](field T) int {
	if field != *new(T) {
		return 1
	}
	return 0
}

func has(capabilities []corev1.Capability, name string) bool {
	return slices.ContainsFunc(capabilities, func(each corev1.Capability) bool { return strings.EqualFold(string(each), name) })
}

// volumes ranks the allowed volumes: 2 with host paths, 1 with types that not every pod may use, 0 otherwise.
func (c *constraint) volumes() int {
	most := 0
	for _, each := range c.Volumes {
		switch each {
		case "hostPath", "*":
			return 2
		case "secret", "configMap", "emptyDir", "downwardAPI", "projected", "none":
		default:
			most = 1
		}
	}
	return most
}

// allows reports whether the users and groups of an SCC include the account of a pod, and whether they include all
// accounts. Admission also accepts an account that may "use" the SCC, and the user that creates the pod: the controllers
// of kube-system (there, sccadmission and sccmatching, ConstraintAppliesTo). RBAC is not read, so an SCC that is allowed
// by a role alone is not found.
func (c *constraint) allows(pod created) (this, all bool) {
	for _, group := range []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:kube-system"} {
		all = all || slices.Contains(c.Groups, group)
	}
	account := "system:serviceaccount:" + pod.Namespace + ":" + cmp.Or(pod.Spec.ServiceAccountName, "default")
	return all || slices.Contains(c.Groups, "system:serviceaccounts:"+pod.Namespace) || slices.Contains(c.Users, account), all
}

// cached is how long admission may use an SCC as it was before.
const cached = time.Minute

// passedBy reports whether a pod was admitted by another SCC although this one was as it is now: it refuses the pod.
func (c *constraint) passedBy(pod created) bool {
	changed := c.CreationTimestamp.Time
	for _, entry := range c.ManagedFields {
		if entry.Time != nil && entry.Time.After(changed) {
			changed = entry.Time.Time
		}
	}
	known := !changed.IsZero() && (len(c.ManagedFields) > 0 || c.Generation == 1)
	return known && pod.CreationTimestamp.After(changed.Add(cached))
}

// refuses reports whether an SCC plainly refuses a pod: what only the namespace decides is not compared (there,
// sccmatching, ValidatePodSecurityContext and ValidateContainerSecurityContext).
func (c *constraint) refuses(spec *corev1.PodSpec) bool {
	if spec.HostNetwork && !c.AllowHostNetwork || spec.HostPID && !c.AllowHostPID || spec.HostIPC && !c.AllowHostIPC {
		return true
	}
	if of := spec.SecurityContext; of != nil && (c.refusesSeccomp(of.SeccompProfile) || c.refusesUser(of.RunAsUser)) {
		return true
	}
	return slices.ContainsFunc(spec.Volumes, c.refusesVolume) ||
		slices.ContainsFunc(spec.Containers, c.refusesContainer) || slices.ContainsFunc(spec.InitContainers, c.refusesContainer)
}

func (c *constraint) refusesVolume(volume corev1.Volume) bool {
	if slices.Contains(c.Volumes, "*") {
		return false
	}
	source := reflect.ValueOf(volume.VolumeSource)
	for field, value := range source.Fields() {
		if value.IsNil() {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "hostPath" && c.AllowHostDirVolumePlugin, name == "projected" && slices.Contains(c.Volumes, "secret"):
			return false
		case c.Volumes == nil: // the default is all others (there, sccdefaults)
			return name == "hostPath"
		}
		return !slices.Contains(c.Volumes, name)
	}
	return false
}

func (c *constraint) refusesContainer(container corev1.Container) bool {
	hostPort := func(port corev1.ContainerPort) bool { return port.HostPort > 0 }
	if !c.AllowHostPorts && slices.ContainsFunc(container.Ports, hostPort) {
		return true
	}
	of := container.SecurityContext
	if of == nil {
		return false
	}
	return is(of.Privileged, true) && !c.AllowPrivilegedContainer ||
		is(of.ReadOnlyRootFilesystem, false) && c.ReadOnlyRootFilesystem ||
		is(of.AllowPrivilegeEscalation, true) && is(c.AllowPrivilegeEscalation, false) ||
		of.Capabilities != nil && slices.ContainsFunc(of.Capabilities.Add, c.refusesCapability) ||
		c.refusesUser(of.RunAsUser) || c.refusesSeccomp(of.SeccompProfile)
}

func is(value *bool, wanted bool) bool { return value != nil && *value == wanted }

func (c *constraint) refusesCapability(added corev1.Capability) bool {
	return !slices.Contains(c.AllowedCapabilities, "*") && !slices.Contains(c.AllowedCapabilities, added) &&
		!slices.Contains(c.DefaultAddCapabilities, added)
}

// refusesUser is for root alone: which other users are allowed, the namespace decides.
func (c *constraint) refusesUser(user *int64) bool {
	return user != nil && *user == 0 && (c.RunAsUser.Type == "MustRunAsNonRoot" || c.RunAsUser.Type == "MustRunAsRange")
}

// refusesSeccomp reports whether an SCC refuses a profile: one without profiles allows none that a pod names.
func (c *constraint) refusesSeccomp(profile *corev1.SeccompProfile) bool {
	if profile == nil || slices.Contains(c.SeccompProfiles, "*") {
		return false
	}
	names := map[corev1.SeccompProfileType][]string{
		corev1.SeccompProfileTypeUnconfined:     {"unconfined"},
		corev1.SeccompProfileTypeRuntimeDefault: {"runtime/default", "docker/default"},
	}[profile.Type]
	if profile.LocalhostProfile != nil {
		names = []string{"localhost/" + *profile.LocalhostProfile}
	}
	return !slices.ContainsFunc(names, func(name string) bool { return slices.Contains(c.SeccompProfiles, name) })
}

// restrictions are the fields by which an SCC changes what it admits.
func (c *constraint) restrictions() []string {
	var all []string
	add := func(restricts bool, format string, args ...any) {
		if restricts {
			all = append(all, words.Line(fmt.Sprintf(format, args...), maxText))
		}
	}
	add(c.ReadOnlyRootFilesystem, "readOnlyRootFilesystem is true")
	add(is(c.AllowPrivilegeEscalation, false), "allowPrivilegeEscalation is false")
	add(len(c.RequiredDropCapabilities) > 0, "requiredDropCapabilities has %s", c.RequiredDropCapabilities)
	for name, of := range map[string]strategy{"runAsUser": c.RunAsUser, "seLinuxContext": c.SELinuxContext, "fsGroup": c.FSGroup} {
		add(of.Type != "" && of.Type != "RunAsAny", "%s is %s", name, of.Type)
	}
	slices.Sort(all)
	return all
}

// admitted are the pods that admission gives, or would give, the SCC of a user.
type admitted struct {
	namespaces, before map[string]bool
	pods, present      int
}

// constraints returns a finding for each SCC of a user that pods of the platform get.
func (i *inspection) constraints(ctx context.Context, pods []created) []finding.Finding {
	all, err := snapshot.List[constraint](ctx, i.cluster, securityGroup().WithResource("securitycontextconstraints"))
	if !i.lists("SecurityContextConstraints", err) {
		return nil
	}
	byName := map[string]*constraint{}
	for at := range all {
		byName[all[at].Name] = &all[at]
	}
	var found []finding.Finding
	for at := range all {
		c := &all[at]
		if check.OfRelease(c) {
			continue
		}
		got := &admitted{namespaces: map[string]bool{}, before: map[string]bool{}}
		for _, pod := range pods {
			got.add(c, byName[pod.Annotations[snapshot.AdmittedSCC]], pod)
		}
		if got.pods > 0 {
			found = append(found, c.describe(got))
		}
	}
	return found
}

// add counts a pod that has an SCC today, or would get it in place of the present one. A pod that names its SCC gets no
// other, and one without an SCC is in a namespace that admission passes by (there, sccadmission, computeSecurityContext).
func (a *admitted) add(c, today *constraint, pod created) {
	if today == nil || pod.Annotations[snapshot.RequiredSCC] != "" {
		return
	}
	this, all := c.allows(pod)
	has := today == c
	switch {
	case has && !all && (c.priority() <= 0 || snapshot.HandMade(c) == ""): // an operator's, for its own account
		return
	case !has && (!this || !c.before(today) || c.passedBy(pod) || c.refuses(pod.spec())):
		return
	}
	a.pods++
	a.present += one(has)
	a.namespaces[pod.Namespace] = true
	if !has {
		a.before[fmt.Sprintf("%s (priority %d)", today.Name, today.priority())] = true
	}
}

func (c *constraint) describe(got *admitted) finding.Finding {
	name, effect := words.Line(c.Name, maxText), "no field of it restricts them, but what they run as may change"
	if restrictions := c.restrictions(); len(restrictions) > 0 {
		effect = "it restricts them: " + words.Clauses(restrictions, maxNamed)
	}
	message := fmt.Sprintf("SecurityContextConstraints %q, which are not the release's, apply to %s of the platform in %s", name,
		words.Count(got.pods, "pod"), places(got.namespaces))
	if got.present > 0 {
		message += fmt.Sprintf("; it is already the SCC of %d of them", got.present)
	}
	if len(got.before) > 0 {
		message += fmt.Sprintf("; when the update recreates the pods, which require no SCC, admission prefers this one (priority %d) "+
			"to %s",
			c.priority(), texts(got.before))
	}
	subjects := map[string]bool{}
	for _, each := range slices.Concat(c.Groups, c.Users) {
		subjects[each] = true
	}
	if len(subjects) > 0 {
		message += "; it applies to " + texts(subjects)
	}
	return finding.Warn(reasonUsersSCC, "%s; %s", message, effect).
		Named(finding.NameOf(namePlatformPodsSCC, c.Name)).
		Remedy("Set priority of SCC %s to null, and allow it for the service accounts of your workloads instead of the platform's. "+
			"Then delete the platform pods that use it.", name).
		Do(finding.Read("oc get scc %s -o yaml", c.Name)).
		About(finding.Object{APIVersion: securityGroup().String(), Kind: "SecurityContextConstraints", Name: c.Name})
}
