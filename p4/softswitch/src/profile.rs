//! Action profiles and selectors: members and groups.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};

use crate::control::{GroupMember, WeightedCall};
use crate::ids::{ActionId, Port};

/// A member: what it runs, and who refers to it.
pub(crate) struct MemberState {
    /// The controller's number; `None` for a choice of a one-shot entry.
    pub(crate) id: Option<u32>,
    pub(crate) action: ActionId,
    pub(crate) data: Vec<u64>,
    pub(crate) users: u32,
}

/// A group.
pub(crate) struct GroupState {
    /// The controller's number; `None` for a one-shot entry's own.
    pub(crate) id: Option<u32>,
    pub(crate) max_size: u32,
    /// Member numbers of this profile, weights, watched ports.
    pub(crate) members: Vec<(u32, u32, Option<Port>)>,
    /// Members that can be chosen: of the numbers below the weights' sum each has those from the
    /// one before's end to its own.
    active: Vec<(u64, u32)>,
    /// Choose at random rather than by hash.
    pub(crate) random: bool,
    pub(crate) users: u32,
}

/// A profile's members and groups. Both are numbered densely, smallest free
/// number first; the controller's numbers lead to these.
#[derive(Default)]
pub(crate) struct Profile {
    members: Slab<MemberState>,
    groups: Slab<GroupState>,
    pub(crate) member_ids: BTreeMap<u32, u32>,
    pub(crate) group_ids: BTreeMap<u32, u32>,
    used: usize,
}

/// Values by number, the smallest free number first.
struct Slab<T> {
    slots: Vec<Option<T>>,
    free: BinaryHeap<Reverse<u32>>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab {
            slots: Vec::new(),
            free: BinaryHeap::new(),
        }
    }
}

impl<T> Slab<T> {
    fn add(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(Reverse(free)) => {
                self.slots[free as usize] = Some(value);
                free
            }
            None => {
                self.slots.push(Some(value));
                self.slots.len() as u32 - 1
            }
        }
    }

    fn take(&mut self, number: u32) -> Option<T> {
        let value = self.slots.get_mut(number as usize)?.take()?;
        self.free.push(Reverse(number));
        Some(value)
    }

    fn get(&self, number: u32) -> Option<&T> {
        self.slots.get(number as usize)?.as_ref()
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.slots.get_mut(number as usize)?.as_mut()
    }
}

impl Profile {
    pub(crate) fn member_count(&self) -> usize {
        self.used
    }

    pub(crate) fn member(&self, number: u32) -> Option<&MemberState> {
        self.members.get(number)
    }

    pub(crate) fn member_mut(&mut self, number: u32) -> Option<&mut MemberState> {
        self.members.get_mut(number)
    }

    pub(crate) fn group(&self, number: u32) -> Option<&GroupState> {
        self.groups.get(number)
    }

    pub(crate) fn group_mut(&mut self, number: u32) -> Option<&mut GroupState> {
        self.groups.get_mut(number)
    }

    pub(crate) fn add_member(&mut self, member: MemberState) -> u32 {
        let id = member.id;
        let number = self.members.add(member);
        if let Some(id) = id {
            self.member_ids.insert(id, number);
        }
        self.used += 1;
        number
    }

    pub(crate) fn remove_member(&mut self, number: u32) {
        if let Some(member) = self.members.take(number) {
            self.used -= 1;
            if let Some(id) = member.id {
                self.member_ids.remove(&id);
            }
        }
    }

    /// Adds an empty group.
    pub(crate) fn add_group(&mut self, id: Option<u32>, max_size: u32) -> u32 {
        let group = GroupState {
            id,
            max_size,
            members: Vec::new(),
            active: Vec::new(),
            random: false,
            users: 0,
        };
        let number = self.groups.add(group);
        if let Some(id) = id {
            self.group_ids.insert(id, number);
        }
        number
    }

    /// Removes a group and lets go of its members.
    pub(crate) fn remove_group(&mut self, number: u32) {
        if let Some(group) = self.groups.take(number) {
            if let Some(id) = group.id {
                self.group_ids.remove(&id);
            }
            for (member, ..) in group.members {
                self.release(member);
            }
        }
    }

    fn release(&mut self, number: u32) {
        let Some(member) = self.member_mut(number) else {
            return;
        };
        member.users -= 1;
        if member.id.is_none() && member.users == 0 {
            self.remove_member(number);
        }
    }

    /// Replaces a group's members, whose numbers are the controller's and are
    /// known to exist.
    pub(crate) fn set_members(
        &mut self,
        number: u32,
        members: &[GroupMember],
        down: &HashSet<Port>,
    ) {
        let resolved: Vec<_> = members
            .iter()
            .filter_map(|m| Some((*self.member_ids.get(&m.member)?, m.weight, m.watch_port)))
            .collect();
        self.replace_members(number, resolved, down);
    }

    fn replace_members(
        &mut self,
        number: u32,
        mut members: Vec<(u32, u32, Option<Port>)>,
        down: &HashSet<Port>,
    ) {
        // The order of choice is that of the members, not of the request.
        members.sort_by_key(|(member, ..)| *member);
        for (member, ..) in &members {
            if let Some(member) = self.member_mut(*member) {
                member.users += 1;
            }
        }
        let Some(group) = self.group_mut(number) else {
            return;
        };
        let before = std::mem::replace(&mut group.members, members);
        group.activate(down);
        for (member, ..) in before {
            self.release(member);
        }
    }

    /// Makes a one-shot entry's own group.
    pub(crate) fn add_one_shot(
        &mut self,
        choices: &[WeightedCall],
        data: impl Fn(&WeightedCall) -> Vec<u64>,
        random: bool,
        down: &HashSet<Port>,
    ) -> u32 {
        let members = choices
            .iter()
            .map(|choice| {
                let member = self.add_member(MemberState {
                    id: None,
                    action: choice.call.action,
                    data: data(choice),
                    users: 0,
                });
                (member, choice.weight, choice.watch_port)
            })
            .collect();
        let group = self.add_group(None, 0);
        if let Some(state) = self.group_mut(group) {
            state.random = random;
        }
        self.replace_members(group, members, down);
        group
    }

    /// Recomputes which members can be chosen after a port changed.
    pub(crate) fn ports_changed(&mut self, down: &HashSet<Port>) {
        for group in self.groups.slots.iter_mut().flatten() {
            if group.members.iter().any(|(_, _, port)| port.is_some()) {
                group.activate(down);
            }
        }
    }
}

impl GroupState {
    fn activate(&mut self, down: &HashSet<Port>) {
        self.active.clear();
        let mut end = 0;
        for &(member, weight, port) in &self.members {
            if port.is_none_or(|p| !down.contains(&p)) {
                end += u64::from(weight);
                self.active.push((end, member));
            }
        }
    }

    /// Whether no member can be chosen.
    pub(crate) fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// The member that a number falls to, each as often as it weighs.
    #[inline]
    pub(crate) fn pick(&self, number: u64) -> Option<u32> {
        let &(total, _) = self.active.last()?;
        let at = number % total.max(1);
        let index = if total == self.active.len() as u64 {
            at as usize
        } else {
            self.active.partition_point(|(end, _)| *end <= at)
        };
        self.active.get(index).map(|(_, member)| *member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_chosen_as_often_as_they_weigh() {
        let mut group = GroupState {
            id: None,
            max_size: 0,
            members: vec![(4, 1, None), (5, i32::MAX as u32, Some(1)), (6, 2, None)],
            active: Vec::new(),
            random: false,
            users: 0,
        };
        group.activate(&HashSet::new());
        let heavy = u64::from(i32::MAX as u32);
        let picks = [0, 1, heavy, heavy + 1, heavy + 2, heavy + 3].map(|n| group.pick(n));
        assert_eq!(picks, [4, 5, 5, 6, 6, 4].map(Some));
        group.activate(&HashSet::from([1]));
        let picks: Vec<_> = (0..4).map(|n| group.pick(n)).collect();
        assert_eq!(picks, [4, 6, 6, 4].map(Some), "port 1 is down");
        group.members.clear();
        group.activate(&HashSet::new());
        assert_eq!(group.pick(7), None);
    }
}
