"""Operations on schemas."""
