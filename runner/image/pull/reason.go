package pull

import "github.com/openshift/update-preflight/collector/finding"

// ReasonNothingToPull is reported when there are no images to pull.
//
// Cause: the release has no check that runs.
//
// Remedy: none is needed.
const ReasonNothingToPull finding.Reason = "NothingToPull"

// ReasonNoNode is reported when images cannot be pulled onto any node.
//
// Cause: all nodes are cordoned, not ready, or short of disk space.
//
// Remedy: provide a node that is ready, schedulable and has free disk space: `oc get
// nodes`.
const ReasonNoNode finding.Reason = "NoNode"

// ReasonNodeCordoned is reported when images are not pulled onto cordoned nodes.
//
// Cause: the nodes are marked as unschedulable.
//
// Remedy: none is needed; to include a node, run `oc adm uncordon NODE`.
const ReasonNodeCordoned finding.Reason = "NodeCordoned"

// ReasonNodeNotReady is reported when images are not pulled onto nodes that are not
// ready.
//
// Cause: the kubelet of the node is stopped, failing or unreachable.
//
// Remedy: restore the node: `oc describe node NODE`.
const ReasonNodeNotReady finding.Reason = "NodeNotReady"

// ReasonImagesPulled is reported when nodes have all images.
//
// Cause: the images were pulled, or were present before.
//
// Remedy: none is needed.
const ReasonImagesPulled finding.Reason = "ImagesPulled"

// ReasonImagePullFailed is reported when a node cannot pull an image, and a retry
// cannot succeed.
//
// Cause: the image is missing, or the node may not pull it.
//
// Remedy: fix what the message names, then run the preflight again.
const ReasonImagePullFailed finding.Reason = "ImagePullFailed"

// ReasonImagePullFailing is reported when a node could not pull an image in time, and
// a retry may succeed.
//
// Cause: the registry or the network fails temporarily.
//
// Remedy: fix what the message names, then run the preflight again.
const ReasonImagePullFailing finding.Reason = "ImagePullFailing"

// ReasonImagePullNotTried is reported when a node did not try to pull all images.
//
// Cause: the Job or its pod was not started, was evicted, or exceeded the deadline.
//
// Remedy: fix what the message names, or run the preflight again with a longer
// timeout.
const ReasonImagePullNotTried finding.Reason = "ImagePullNotTried"

// ReasonDiskPressure is reported when nodes have the condition DiskPressure; no image
// is pulled onto them.
//
// Cause: the disk of the node is almost full.
//
// Remedy: remove unused images and pods, or enlarge the disk.
const ReasonDiskPressure finding.Reason = "DiskPressure"

// ReasonDiskTooSmall is reported when nodes have less free space for images than the
// compressed images need; no image is pulled onto them.
//
// Cause: the disk of the node is too small or too full.
//
// Remedy: remove unused images and pods, or enlarge the disk.
const ReasonDiskTooSmall finding.Reason = "DiskTooSmall"

// ReasonDiskSpaceLow is reported when the free space of nodes may be too small for the
// unpacked images.
//
// Cause: unpacked layers need several times the space of compressed ones.
//
// Remedy: remove unused images and pods, or enlarge the disk.
const ReasonDiskSpaceLow finding.Reason = "DiskSpaceLow"

// ReasonDiskSpace is reported when no node is known to be short of disk space.
//
// Cause: no node has the condition DiskPressure, and all known free space is
// sufficient.
//
// Remedy: none is needed.
const ReasonDiskSpace finding.Reason = "DiskSpace"
