package provider

// What an ECS instance leaves: images, snapshots, disks that do not end with it, and
// elastic addresses.

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

const alibabaNameLength = 128

type alibabaImage struct {
	ID       string `json:"ImageId"`
	Name     string `json:"ImageName"`
	State    string `json:"Status"`
	Progress string `json:"Progress"`
	Size     int64  `json:"Size"`
	Disks    struct {
		Of []struct {
			Snapshot string `json:"SnapshotId"`
		} `json:"DiskDeviceMapping"`
	} `json:"DiskDeviceMappings"`
}

// images lists own images in every state: without Status, those that are not ready
// are left out.
func (a alibaba) images(ctx context.Context, region string, in ...string) ([]alibabaImage, error) {
	in = append(in, "RegionId", region, "ImageOwnerAlias", "self", "Status", "Creating,Waiting,Available,UnAvailable,CreateFailed,Deprecated")
	return alibabaPages[alibabaImage](ctx, a, ecsOf(region), "DescribeImages", "Images", "Image", true, in...)
}

func (a alibaba) named(ctx context.Context, region, name string) (Snapshot, bool, error) {
	found, err := a.images(ctx, region, "ImageName", name)
	for _, im := range found {
		if im.Name == name {
			return Snapshot{ID: region + "/" + text(im.ID), Name: text(im.Name)}, true, nil
		}
	}
	return Snapshot{}, false, err
}

// snapshot makes an image of all its disks. The same name again is the same image.
func (a alibaba) snapshot(ctx context.Context, in Instance, name string) (Snapshot, error) {
	region, own := placed(in.ID)
	name = imageName("rentop-"+name, own, alibabaNameLength)
	named := func() (Snapshot, bool, error) { return a.named(ctx, region, name) }
	return imaged(region, name, "", named, func() (string, error) {
		var answer struct{ ImageId string }
		err := a.request(acting(ctx), ecsOf(region), "CreateImage", []string{"RegionId", region, "InstanceId", own, "ImageName", name, "Description", "made by rentop before a release"}, &answer)
		return answer.ImageId, err
	})
}

func (a alibaba) snapshotState(ctx context.Context, id string) (SnapshotState, error) {
	if why := checkPlaced(id, "m-"); why != "" {
		return SnapshotState{}, errors.New(why)
	}
	region, own := placed(id)
	found, err := a.images(ctx, region, "ImageId", own)
	if err != nil {
		return SnapshotState{}, err
	}
	for _, im := range found {
		if im.ID != own {
			continue
		}
		disks := 0
		for _, d := range im.Disks.Of {
			if d.Snapshot != "" {
				disks++
			}
		}
		s := SnapshotState{Ready: im.State == "Available" && disks > 0, Failed: im.State == "CreateFailed" || im.State == "UnAvailable", Detail: text(strings.TrimSpace(im.State + " " + im.Progress))}
		if im.State == "Available" && disks == 0 {
			s.Failed, s.Detail = true, "Available, and without the snapshot of any disk"
		}
		return s, nil
	}
	return SnapshotState{}, errAbsent
}

// leftovers are disks (all of a stopped instance, else those that outlive it),
// elastic addresses, snapshots and images; once it is gone, disks and addresses
// that nothing has. The API tells no price of what is there already.
func (a alibaba) leftovers(ctx context.Context, in Instance, after State) ([]Leftover, error) {
	region, own := placed(in.ID)
	gone := in.Status.State == Gone
	var list []Leftover
	add := func(kind, id, name, note string) {
		list = append(list, Leftover{Kind: kind, ID: region + "/" + text(id), Name: text(name), Note: text(note)})
	}
	if in.Status.State == Stopped && after == Stopped && *in.Status.Billed {
		add("instance", own, in.Name, "the whole of it: its stop did not end the charge ("+in.Status.Detail+")")
	}
	filter := []string{"RegionId", region, "InstanceId", own}
	if gone {
		filter = []string{"RegionId", region, "Status", "Available"}
	}
	disks, err := alibabaPages[struct {
		ID       string `json:"DiskId"`
		Name     string `json:"DiskName"`
		Size     int64  `json:"Size"`
		Category string `json:"Category"`
		Dies     *bool  `json:"DeleteWithInstance"`
	}](ctx, a, ecsOf(region), "DescribeDisks", "Disks", "Disk", false, filter...)
	if err != nil {
		return nil, err
	}
	for _, d := range disks {
		size := fmt.Sprintf("%d GB %s", d.Size, d.Category)
		switch {
		case gone:
			add("volume", d.ID, d.Name, size+", on no instance")
		case d.Dies == nil || !*d.Dies:
			add("volume", d.ID, d.Name, size+", not deleted with the instance")
		case after == Stopped:
			add("disk", d.ID, d.Name, size)
		}
	}
	ips, err := alibabaPages[struct {
		ID    string `json:"AllocationId"`
		IP    string `json:"IpAddress"`
		Owner string `json:"InstanceId"`
	}](ctx, a, alibabaAPI{"vpc." + region + ".aliyuncs.com", "2016-04-28"}, "DescribeEipAddresses", "EipAddresses", "EipAddress", true, "RegionId", region)
	if err != nil {
		return nil, err
	}
	for _, ip := range ips {
		switch {
		case gone && ip.Owner == "":
			add("ip", ip.ID, ip.IP, "elastic address, on nothing")
		case !gone && ip.Owner == own:
			add("ip", ip.ID, ip.IP, "elastic address, kept until it is released")
		}
	}
	snapshots, err := alibabaPages[struct {
		ID   string `json:"SnapshotId"`
		Name string `json:"SnapshotName"`
		Disk string `json:"SourceDiskId"`
		Size string `json:"SourceDiskSize"`
	}](ctx, a, ecsOf(region), "DescribeSnapshots", "Snapshots", "Snapshot", false, "RegionId", region, "InstanceId", own)
	if err != nil && !(gone && errors.Is(err, errAbsent)) { // of what is gone it may know no more
		return nil, err
	}
	for _, s := range snapshots {
		add("snapshot", s.ID, s.Name, "of a disk of "+s.Size+" GB")
	}
	images, err := a.images(ctx, region)
	if err != nil {
		return nil, err
	}
	for _, im := range images {
		if strings.HasSuffix(im.Name, "-"+own) {
			add("image", im.ID, im.Name, fmt.Sprintf("%d GB, by its snapshots", im.Size))
		}
	}
	return list, nil
}
