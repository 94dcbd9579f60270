package pull

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
)

var diskName = finding.NewName("NodeDiskSpace", "The findings about the disk space of nodes for images.")

const (
	// unpackedRatio is the assumed size of unpacked layers relative to compressed ones.
	unpackedRatio = 3
	// diskParallelism bounds the concurrent requests to kubelets.
	diskParallelism = 16
	// kubeletTimeout bounds a request to a kubelet.
	kubeletTimeout = 10 * time.Second
)

// summary has the fields of a kubelet's stats/summary that are read (k8s.io/kubelet/pkg/apis/stats/v1alpha1).
type summary struct {
	Node struct {
		Runtime struct {
			ImageFs struct {
				AvailableBytes *uint64 `json:"availableBytes"`
			} `json:"imageFs"`
		} `json:"runtime"`
	} `json:"node"`
}

// checkDisks returns the names of the nodes that images may be pulled onto, and
// findings about the disks of all nodes. It reads the condition DiskPressure and,
// where the kubelet permits, the free space for images. bytes is the compressed size
// of the images.
func (n Nodes) checkDisks(ctx context.Context, nodes []corev1.Node, bytes int64) ([]string, []finding.Finding) {
	free := n.freeSpace(ctx, nodes)
	var usable []string
	d := disks{needed: uint64(max(0, bytes))}
	for i := range nodes {
		name := nodes[i].Name
		switch {
		case hasCondition(&nodes[i], corev1.NodeDiskPressure):
			d.pressure = append(d.pressure, name)
			continue
		case free[i] == nil:
			usable = append(usable, name)
			continue
		case *free[i] < d.needed:
			d.known++
			d.tooSmall = append(d.tooSmall, name)
			continue
		case *free[i]/unpackedRatio < d.needed:
			d.low = append(d.low, name)
		}
		d.known++
		usable = append(usable, name)
	}
	return usable, d.findings(len(nodes))
}

// freeSpace returns the free space for images of each node in bytes; nil when it is unknown.
func (n Nodes) freeSpace(ctx context.Context, nodes []corev1.Node) []*uint64 {
	free := make([]*uint64, len(nodes))
	var group errgroup.Group
	group.SetLimit(diskParallelism)
	for i := range nodes {
		group.Go(func() error {
			free[i] = n.freeSpaceOf(ctx, nodes[i].Name)
			return nil
		})
	}
	_ = group.Wait() // no error is returned
	return free
}

func (n Nodes) freeSpaceOf(ctx context.Context, node string) *uint64 {
	response, err := n.Client.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix("stats", "summary").
		Timeout(kubeletTimeout).DoRaw(ctx)
	var parsed summary
	if err != nil || json.Unmarshal(response, &parsed) != nil {
		return nil
	}
	return parsed.Node.Runtime.ImageFs.AvailableBytes
}

type disks struct {
	// needed is the compressed size of the images in bytes.
	needed                  uint64
	pressure, tooSmall, low []string
	// known counts the nodes without DiskPressure whose free space is known.
	known int
}

func (d disks) findings(nodes int) []finding.Finding {
	needed := fmt.Sprintf("%.1f MiB", float64(d.needed)/(1<<20))
	evidence := map[string]string{"compressedBytes": strconv.FormatUint(d.needed, 10), "nodes": strconv.Itoa(nodes), "nodesWithKnownSpace": strconv.Itoa(d.known)}
	var findings []finding.Finding
	add := func(names []string, f finding.Finding) {
		if len(names) == 0 {
			return
		}
		f.Message = words.List(names, mostNames) + ": " + f.Message
		findings = append(findings, f.Named(diskName).About(objects(names)...).Observed(evidence).
			Remedy("Free space on the node: remove unused images and pods, or enlarge its disk.").
			Do(finding.Read("oc get --raw /api/v1/nodes/%s/proxy/stats/summary", names[0])))
	}
	add(d.pressure, finding.Fail(reasonDiskPressure, "the node has the condition DiskPressure; no image was pulled onto it"))
	add(d.tooSmall, finding.Fail(reasonDiskTooSmall, "the free space for images is less than their compressed size of %s; no image was pulled onto the node", needed))
	add(d.low, finding.Warn(reasonDiskSpaceLow, "the free space for images may be too small for them when unpacked; their compressed size is %s", needed))
	if len(findings) == 0 && nodes > 0 {
		return []finding.Finding{finding.Pass(gap.Proven("the conditions of the nodes"), reasonDiskSpace,
			"none of %s has the condition DiskPressure; %d are known to have enough space for the images (compressed size %s)", words.Count(nodes, "node"), d.known, needed).
			Named(diskName).Observed(evidence)}
	}
	return findings
}
