package placement

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Preference is which of the suitable nodes a pod is placed on.
type Preference int

// The preferences.
const (
	// Emptiest approximates the scores of the default profile: free resources, and few pods of the same controller.
	Emptiest Preference = iota
	// Fullest prefers the nodes with the least free resources, as the profile HighNodeUtilization does.
	Fullest
	// Any takes all suitable nodes for equal.
	Any
)

// Find is a suitable node for a pod, or -1 and why each node is not. The source of random
// numbers decides between equal nodes: they are tried from a random one on.
func (s *State) Find(pod *Pod, preference Preference, random *rand.Rand) (int, Rejections) {
	var rejected Rejections
	nodes := len(s.c.nodes)
	if nodes == 0 {
		return -1, rejected
	}
	pod.class.evaluate(s.c.nodes)
	skews := s.skews(pod)
	from := random.IntN(nodes)
	scores := s.scores(pod, preference)
	best, bestScore := -1, int64(0)
	for i := range nodes {
		node := from + i
		if node >= nodes {
			node -= nodes
		}
		// Most nodes are not better, which takes less time to find out than whether they are suitable.
		score := scores.of(node)
		if best >= 0 && score <= bestScore {
			continue
		}
		if why := s.reject(pod, node, skews); why != None {
			rejected[why]++
			continue
		}
		if best, bestScore = node, score; preference == Any {
			break
		}
	}
	if best >= 0 {
		return best, Rejections{}
	}
	return best, rejected
}

// scores are how well the nodes suit a pod; more is better.
type scores struct {
	// free is the free share of each node, in percent, and weight how it counts.
	free   []int64
	weight int64
	// siblings are the pods of the same controller on each node; nil where they do not count.
	siblings []int16
}

func (s *State) scores(pod *Pod, preference Preference) scores {
	scores := scores{free: s.free}
	switch preference {
	case Any:
	case Fullest:
		scores.weight = -1
	case Emptiest:
		scores.weight = 1
		if pod.owner >= 0 {
			scores.siblings = s.siblings[pod.owner]
		}
	}
	return scores
}

func (s *scores) of(node int) int64 {
	score := s.weight * s.free[node]
	if s.siblings != nil {
		score -= siblingWeight * int64(s.siblings[node])
	}
	return score
}

const (
	percent = 100
	// siblingWeight is how much a pod of the same controller on a node counts.
	siblingWeight = 60
)

// share is how much of the processors and the memory of a node is free, in percent.
func (s *State) share(node int) int64 {
	var sum, counted int64
	for _, at := range []int{processors, memory} {
		if room := s.c.room[node][at]; room > 0 {
			sum += (room - s.used[node][at]) * percent / room
			counted++
		}
	}
	if counted == 0 {
		return 0
	}
	return sum / counted
}

type storage struct {
	claims  map[string]*corev1.PersistentVolumeClaim
	volumes map[string]*corev1.PersistentVolume
	// late are the classes whose volumes are bound when a pod is placed.
	late    map[string]bool
	drivers map[string]bool
	// unattached are the drivers whose volumes are not attached, but mounted on any number of nodes.
	unattached map[string]bool
	// numbers identify the attached volumes.
	numbers map[string]int32
	// exclusive numbers the claims that one pod uses at a time.
	exclusive map[string]int32
	// taken are the spare volumes of claims that are made again.
	taken   map[string]bool
	unread  bool
	partial bool
}

func storageOf(input *Input) *storage {
	s := &storage{
		claims: map[string]*corev1.PersistentVolumeClaim{}, volumes: map[string]*corev1.PersistentVolume{},
		late: map[string]bool{}, drivers: map[string]bool{}, unattached: map[string]bool{}, numbers: map[string]int32{},
		exclusive: map[string]int32{}, taken: map[string]bool{}, unread: input.Unread, partial: input.Partial,
	}
	for i := range input.Claims {
		s.claims[input.Claims[i].Namespace+"/"+input.Claims[i].Name] = &input.Claims[i]
	}
	for i := range input.Drivers {
		required := input.Drivers[i].Spec.AttachRequired
		s.unattached[input.Drivers[i].Name] = required != nil && !*required
	}
	for i := range input.Volumes {
		s.volumes[input.Volumes[i].Name] = &input.Volumes[i]
	}
	for i := range input.Classes {
		mode := input.Classes[i].VolumeBindingMode
		s.late[input.Classes[i].Name] = mode != nil && *mode == storagev1.VolumeBindingWaitForFirstConsumer
	}
	return s
}

// require compiles the nodes from which the volumes of a pod can be used.
func (s *storage) require(pod *corev1.Pod, compiled *Pod) {
	for i := range pod.Spec.Volumes {
		switch volume := &pod.Spec.Volumes[i]; {
		case volume.Ephemeral != nil:
			compiled.Unknown = "a volume is created with the pod"
		case volume.PersistentVolumeClaim != nil && s.unread:
			compiled.Unknown = "its volumes could not be read"
		case volume.PersistentVolumeClaim != nil && s.remade(pod, volume.PersistentVolumeClaim.ClaimName):
			s.claimAgain(pod.Namespace+"/"+volume.PersistentVolumeClaim.ClaimName, compiled)
		case volume.PersistentVolumeClaim != nil:
			s.claim(pod.Namespace, volume.PersistentVolumeClaim.ClaimName, compiled)
		}
	}
}

func (s *storage) claim(namespace, name string, compiled *Pod) {
	claim := s.claims[namespace+"/"+name]
	if claim != nil && slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) {
		compiled.exclusive = append(compiled.exclusive, s.exclusively(namespace+"/"+name))
	}
	switch {
	case claim == nil && s.partial:
		compiled.Unknown = fmt.Sprintf("PersistentVolumeClaim %q could not be read", name)
		return
	case claim == nil || claim.DeletionTimestamp != nil:
		compiled.Impossible = fmt.Sprintf("PersistentVolumeClaim %q does not exist or is being deleted", name)
		return
	case claim.Spec.VolumeName == "" && claim.Spec.StorageClassName != nil && s.late[*claim.Spec.StorageClassName]:
		compiled.Unknown = fmt.Sprintf("PersistentVolumeClaim %q is bound when the pod is placed", name)
		return
	case claim.Spec.VolumeName == "" && s.partial:
		compiled.Unknown = fmt.Sprintf("PersistentVolumeClaim %q is not bound, and its StorageClass may not have been read", name)
		return
	case claim.Spec.VolumeName == "":
		compiled.Impossible = fmt.Sprintf("PersistentVolumeClaim %q is not bound", name)
		return
	}
	volume := s.volumes[claim.Spec.VolumeName]
	switch {
	case volume == nil && s.partial:
		compiled.Unknown = fmt.Sprintf("PersistentVolume %q could not be read", claim.Spec.VolumeName)
		return
	case volume == nil:
		compiled.Impossible = fmt.Sprintf("PersistentVolume %q does not exist", claim.Spec.VolumeName)
		return
	}
	if affinity := volume.Spec.NodeAffinity; affinity != nil && affinity.Required != nil {
		selector, err := nodeaffinity.NewNodeSelector(affinity.Required)
		if err != nil {
			compiled.Unknown = fmt.Sprintf("the node affinity of PersistentVolume %q is invalid", volume.Name)
			return
		}
		compiled.volumes = append(compiled.volumes, selector.Match)
	}
	if zones := zonesOf(volume); zones != nil {
		compiled.volumes = append(compiled.volumes, zones)
	}
}

// remade is true for a claim that is gone with its pod, and that the StatefulSet of the pod makes again with it
// (kubernetes pkg/controller/statefulset, createPersistentVolumeClaims).
func (s *storage) remade(pod *corev1.Pod, name string) bool {
	by := metav1.GetControllerOfNoCopy(pod)
	if by == nil || by.Kind != "StatefulSet" || !strings.HasSuffix(name, "-"+pod.Name) {
		return false
	}
	claim := s.claims[pod.Namespace+"/"+name]
	return claim == nil && !s.partial || claim != nil && claim.DeletionTimestamp != nil
}

// claimAgain compiles the nodes for a claim that is made again: of a spare volume, of which each such claim takes one, or of
// one that is provisioned then.
func (s *storage) claimAgain(key string, compiled *Pod) {
	_, name, _ := strings.Cut(key, "/")
	claim := s.claims[key]
	if claim == nil || s.partial {
		compiled.Unknown = fmt.Sprintf("PersistentVolumeClaim %q is recreated with the pod", name)
		return
	}
	volume := s.spare(claim)
	switch {
	case volume == nil:
		compiled.Unknown = fmt.Sprintf("PersistentVolumeClaim %q is being deleted, and is bound again when the pod is placed", name)
	case volume.Spec.NodeAffinity != nil || zonesOf(volume) != nil:
		compiled.Unknown = fmt.Sprintf("PersistentVolumeClaim %q is being deleted, and may be bound to another volume then", name)
	}
}

// spare takes a volume that no claim has and that suits one; nil where there is none.
func (s *storage) spare(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	for _, name := range slices.Sorted(maps.Keys(s.volumes)) {
		volume := s.volumes[name]
		capacity := volume.Spec.Capacity[corev1.ResourceStorage]
		suits := volume.Spec.ClaimRef == nil && claim.Spec.StorageClassName != nil &&
			volume.Spec.StorageClassName == *claim.Spec.StorageClassName &&
			capacity.Cmp(claim.Spec.Resources.Requests[corev1.ResourceStorage]) >= 0 && claim.Spec.Selector == nil && !s.taken[name] &&
			!slices.ContainsFunc(claim.Spec.AccessModes, func(mode corev1.PersistentVolumeAccessMode) bool {
				return !slices.Contains(volume.Spec.AccessModes, mode)
			})
		if suits {
			s.taken[name] = true
			return volume
		}
	}
	return nil
}

// exclusively is the number of a claim with the access mode ReadWriteOncePod.
func (s *storage) exclusively(claim string) int32 {
	if _, ok := s.exclusive[claim]; !ok {
		s.exclusive[claim] = ordinal(len(s.exclusive))
	}
	return s.exclusive[claim]
}

// zonesOf requires the zone and the region in the labels of a volume (kubernetes
// pkg/scheduler/framework/plugins/volumezone); nil if it has none.
func zonesOf(volume *corev1.PersistentVolume) func(*corev1.Node) bool {
	required := map[string][]string{}
	for _, key := range []string{
		corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone,
		corev1.LabelFailureDomainBetaRegion,
	} {
		if value, ok := volume.Labels[key]; ok {
			required[key] = strings.Split(value, "__")
		}
	}
	if len(required) == 0 {
		return nil
	}
	return func(node *corev1.Node) bool {
		for key, values := range required {
			if value, ok := node.Labels[key]; ok && !slices.Contains(values, value) {
				return false
			}
		}
		return true
	}
}

// attached are the volumes of CSI drivers of a pod. A node has a volume once, however many of its pods use it.
func (s *storage) attached(pod *corev1.Pod) []attachment {
	var found []attachment
	for i := range pod.Spec.Volumes {
		claimed := pod.Spec.Volumes[i].PersistentVolumeClaim
		if claimed == nil {
			continue
		}
		claim := s.claims[pod.Namespace+"/"+claimed.ClaimName]
		if claim == nil || s.volumes[claim.Spec.VolumeName] == nil {
			continue
		}
		driver := driverOf(&s.volumes[claim.Spec.VolumeName].Spec.PersistentVolumeSource)
		if driver == "" {
			continue
		}
		added := attachment{driver: driver, volume: s.number(claim.Spec.VolumeName)}
		added.single = !s.unattached[added.driver] &&
			!slices.ContainsFunc(claim.Spec.AccessModes, func(mode corev1.PersistentVolumeAccessMode) bool {
				return mode == corev1.ReadWriteMany || mode == corev1.ReadOnlyMany
			})
		if slices.ContainsFunc(found, func(other attachment) bool { return other.volume == added.volume }) {
			continue
		}
		found = append(found, added)
		s.drivers[added.driver] = true
	}
	return found
}

// driverOf returns the driver of a volume that is attached to nodes; empty for a volume that is only mounted, or
// whose source is unknown, as in a collection. The types before CSI are attached by the drivers that replaced
// them, or by Kubernetes.
func driverOf(of *corev1.PersistentVolumeSource) string {
	switch {
	case of.CSI != nil:
		return of.CSI.Driver
	case of.AWSElasticBlockStore != nil:
		return "ebs.csi.aws.com"
	case of.GCEPersistentDisk != nil:
		return "pd.csi.storage.gke.io"
	case of.AzureDisk != nil:
		return "disk.csi.azure.com"
	case of.Cinder != nil:
		return "cinder.csi.openstack.org"
	case of.VsphereVolume != nil:
		return "csi.vsphere.vmware.com"
	case of.FC != nil:
		return "kubernetes.io/fc"
	case of.ISCSI != nil:
		return "kubernetes.io/iscsi"
	}
	return ""
}

func (s *storage) number(volume string) int32 {
	if _, ok := s.numbers[volume]; !ok {
		s.numbers[volume] = ordinal(len(s.numbers))
	}
	return s.numbers[volume]
}
