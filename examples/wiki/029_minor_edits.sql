alter table revision alter column rev_minor_edit type text
  using (case when rev_minor_edit > 0 then 'minor' else 'major' end)
  down using (case when rev_minor_edit = 'minor' then 1 else 0 end);
